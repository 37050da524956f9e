"""Third axis: what heads, neurons and attention edges are worth, by taking them away.

Three ways: *zero* takes an output or an edge's attention away, *mean* replaces it by its mean over inputs,
*resample* by that of another input. What happens to the rest of an attention row is the same in all three: it
keeps its proportions and the row its sum (Farrell et al. 2025). An ablation is a lower bound on importance where
other parts repair the damage (McGrath et al. 2023, "The Hydra Effect"): `joint_effects` shows that. What is
critical depends on the way; all are reported.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from scipy.special import log_softmax

from rasplens.compare.interface import Interface
from rasplens.compare.live import live_rows
from rasplens.compare.shuffling import derangement
from rasplens.compare.subject import Head, Subject, pattern_point, z_point

WAYS = ("zero", "mean", "resample")

EDGE_ANSWERS = 400
"""Edges are ablated on as many inputs as have this many answers together, unless told otherwise."""

HEAD_ANSWERS = 2_000
"""Heads on more: there are few of them."""

ATTENDED = 1e-3
"""The least attention on some input that makes an edge worth trying."""

MOST_NEURONS = 1_024
"""Models with more neurons than this are not ablated neuron by neuron."""

ROUNDING = 1e-6
"""Attention below this is a rounding error."""

_BATCH = 512

Edit = Callable[[torch.Tensor, slice], None]
"""Changes an activation in place, at the rows of the batch that belong to it."""


@dataclass(frozen=True)
class Edge:
    """An attention edge, all heads of the layer together, between positions of the task."""

    layer: int
    query: int
    key: int


@dataclass(frozen=True, eq=False)
class Effects:
    """What ablations cost.

    Attributes:
        table: One row per thing ablated. For every way: its name, the token accuracy lost; `way_probability`,
            the probability of the right answer lost; `way_kl`, the divergence of the answers from what they
            were, in nats. Both are NaN for a model that answers with numbers.
        lost: By way, the share of right answers lost on each input: `[row, input]`.
    """

    table: pd.DataFrame
    lost: Mapping[str, Float[np.ndarray, "row input"]]


def head_effects(subject: Subject, most_answers: int = HEAD_ANSWERS) -> Effects:
    """The worth of each head: rows layer, head."""
    subject = _fewer(subject, most_answers)
    keys = [{"layer": layer, "head": head} for layer, head in subject.heads]

    def edits(way: str) -> list[tuple[str, Edit]]:
        return [(z_point(head[0]), _head_edit(subject, head, way)) for head in subject.heads]

    return _effects(subject, keys, lambda way: _without_each(subject, edits(way)))


def head_position_effects(subject: Subject, most_answers: int = EDGE_ANSWERS) -> Effects:
    """The worth of each head at each position: rows layer, head, position."""
    subject = _fewer(subject, most_answers)
    cells = list(itertools.product(subject.heads, range(subject.n_pos)))
    keys = [{"layer": head[0], "head": head[1], "position": position} for head, position in cells]

    def edits(way: str) -> list[tuple[str, Edit]]:
        return [(z_point(head[0]), _head_edit(subject, head, way, position)) for head, position in cells]

    return _effects(subject, keys, lambda way: _without_each(subject, edits(way)))


def joint_effects(subject: Subject, most_answers: int = EDGE_ANSWERS) -> pd.DataFrame:
    """Heads ablated in pairs.

    Returns:
        Columns first, second, and for every way the accuracy lost, and that beyond the sum of both alone
        (`way_repaired`): above 0, each stands in for the other.
    """
    subject = _fewer(subject, most_answers)
    right = float(subject.right().mean())

    def lost(heads: Sequence[Head], way: str) -> float:
        hooks = [(z_point(head[0]), _whole_batch(_head_edit(subject, head, way))) for head in heads]
        edited = subject.interface.codes(subject.logits(subject.tokens, hooks))
        return right - float((edited == subject.targets).mean())

    alone = {(head, way): lost([head], way) for head in subject.heads for way in WAYS}
    rows = []
    for first, second in itertools.combinations(subject.heads, 2):
        row: dict[str, object] = {"first": f"L{first[0]}H{first[1]}", "second": f"L{second[0]}H{second[1]}"}
        for way in WAYS:
            row[way] = both = lost([first, second], way)
            row[f"{way}_repaired"] = both - alone[first, way] - alone[second, way]
        rows.append(row)
    columns = ["first", "second", *(f"{way}{end}" for way in WAYS for end in ("", "_repaired"))]
    return pd.DataFrame(rows, columns=columns)


def neuron_effects(subject: Subject, most_answers: int = EDGE_ANSWERS // 4) -> Effects:
    """The worth of each neuron: rows layer, neuron. None for models without neurons, or too many of them."""
    subject = _fewer(subject, most_answers)
    points = {layer: f"blocks.{layer}.mlp.hook_post" for layer in range(subject.n_layers)}
    points = {layer: point for layer, point in points.items() if point in subject.model.hook_dict}
    cache = subject.cache(points.values())
    neurons = [(layer, i) for layer, point in points.items() for i in range(cache[point].shape[-1])]
    if len(neurons) > MOST_NEURONS:
        neurons = []
    keys = [{"layer": layer, "neuron": i} for layer, i in neurons]

    def edits(way: str) -> list[tuple[str, Edit]]:
        other = {layer: _replacement(cache[point], way) for layer, point in points.items()}
        return [(points[layer], _assign((slice(None), i), other[layer][..., i])) for layer, i in neurons]

    return _effects(subject, keys, lambda way: _without_each(subject, edits(way)), ["layer", "neuron"])


def edge_effects(subject: Subject, most_answers: int = EDGE_ANSWERS) -> Effects:
    """The worth of each attention edge: rows layer, query, key, and attention (its mean)."""
    subject = _fewer(subject, most_answers)
    edges = attended_edges(subject)
    keys = [{**vars(edge), "attention": _mean_attention(subject, edge)} for edge in edges]

    last = subject.n_layers - 1
    early, late = ([edge for edge in edges if (edge.layer == last) is is_last] for is_last in (False, True))

    def without(way: str) -> Iterable[np.ndarray]:
        others = {layer: _replacement(subject.pattern(layer), way) for layer in range(subject.n_layers)}
        edits = [(pattern_point(edge.layer), _edge_edit(subject, edge, others[edge.layer])) for edge in early]
        yield from _without_each(subject, edits)
        yield from _without_last(subject, late, others)

    return _effects(subject, keys, without, ["layer", "query", "key", "attention"])


def _without_last(
    subject: Subject, edges: Sequence[Edge], others: Mapping[int, np.ndarray]
) -> list[Float[np.ndarray, "input answer logit"]]:
    """The logits after each edge of the last layer is ablated alone.

    Behind the last attention nothing passes between positions: one forward pass ablates an edge in every row, and
    each row's answer says what its own edge is worth.
    """
    by_query: dict[int, list[int]] = {}
    for i, edge in enumerate(edges):
        by_query.setdefault(edge.query, []).append(i)
    found = [subject.clean_logits] * len(edges)
    for together in itertools.zip_longest(*by_query.values()):
        chosen = [i for i in together if i is not None]
        edits = [_edge_edit(subject, edges[i], others[edges[i].layer]) for i in chosen]

        def ablate(pattern: torch.Tensor, hook: object, edits: Sequence[Edit] = edits) -> torch.Tensor:
            pattern = pattern.clone()
            for edit in edits:
                edit(pattern, slice(None))
            return pattern

        logits = subject.logits(subject.tokens, [(pattern_point(subject.n_layers - 1), ablate)])
        for i in chosen:
            own = np.array(subject.task.loss_positions) == edges[i].query
            found[i] = np.where(own[:, None], logits, subject.clean_logits)
    return found


def attended_edges(subject: Subject) -> list[Edge]:
    """The edges that get attention on some input, from a head whose row reaches an answer; layer by layer."""
    live = live_rows(subject)
    edges = []
    for layer in range(subject.n_layers):
        attended = np.zeros((subject.n_pos, subject.n_pos), dtype=bool)
        for head in subject.heads_of(layer):
            rows = live[layer, head]
            attended[rows] |= subject.pattern(layer)[:, head].max(axis=0)[rows] > ATTENDED
        edges += [Edge(layer, int(query), int(key)) for query, key in np.argwhere(attended)]
    return edges


def _without_each(
    subject: Subject, edits: Sequence[tuple[str, Edit]]
) -> Iterable[Float[np.ndarray, "input answer logit"]]:
    """The logits after each edit alone; edits at one hook point share batches, on copies of the inputs."""
    together = max(1, _BATCH // subject.n_inputs)
    for point, group in itertools.groupby(edits, key=lambda edit: edit[0]):
        own = [edit for _, edit in group]
        for start in range(0, len(own), together):
            part, n = own[start : start + together], subject.n_inputs

            def apply(value: torch.Tensor, hook: object, part: Sequence[Edit] = part, n: int = n) -> torch.Tensor:
                value = value.clone()
                for i, edit in enumerate(part):
                    edit(value, slice(i * n, (i + 1) * n))
                return value

            logits = subject.logits(subject.tokens.repeat(len(part), 1), [(point, apply)])
            yield from logits.reshape(len(part), n, *logits.shape[1:])


def _effects(
    subject: Subject,
    keys: Sequence[Mapping[str, object]],
    without: Callable[[str], Iterable[Float[np.ndarray, "input answer logit"]]],
    columns: Sequence[str] = (),
) -> Effects:
    table = pd.DataFrame(keys, columns=list(columns) or None)
    lost = {}
    right = subject.right().mean(axis=1)
    clean = _answer_log_probabilities(subject.interface, subject.clean_logits)
    for way in WAYS:
        rows, probability, kl = [], [], []
        for logits in without(way):
            rows.append(right - (subject.interface.codes(logits) == subject.targets).mean(axis=1))
            edited = _answer_log_probabilities(subject.interface, logits)
            probability.append(_right_probability(clean, subject) - _right_probability(edited, subject))
            kl.append(np.nan if clean is None or edited is None else _divergence(clean, edited))
        lost[way] = np.array(rows).reshape(len(keys), subject.n_inputs)
        table[way], table[f"{way}_probability"], table[f"{way}_kl"] = lost[way].mean(axis=1), probability, kl
    return Effects(table, lost)


def _answer_log_probabilities(interface: Interface, logits: np.ndarray) -> np.ndarray | None:
    """Log-probabilities of the task's answers; None for a model that has no logits for them."""
    if interface.columns is None or not (interface.columns >= 0).any():
        return None
    return log_softmax(logits[..., interface.columns[interface.columns >= 0]].astype(np.float64), axis=-1)


def _divergence(clean: np.ndarray, edited: np.ndarray) -> float:
    """The mean divergence in nats, by the logarithms: a probability that underflows is not infinitely far away."""
    return float((np.exp(clean) * (clean - edited)).sum(axis=-1).mean())


def _right_probability(log_probabilities: np.ndarray | None, subject: Subject) -> float:
    columns = subject.interface.columns
    if log_probabilities is None or columns is None:
        return float("nan")
    place = np.cumsum(columns >= 0) - 1
    possible = columns[subject.targets] >= 0
    at_target = np.take_along_axis(np.exp(log_probabilities), place[subject.targets][..., None], axis=-1)[..., 0]
    return float(np.where(possible, at_target, 0.0).mean())


def _head_edit(subject: Subject, head: Head, way: str, position: int | None = None) -> Edit:
    layer, index = head
    gathered = subject.whole_gathered(layer)[:, :, index]
    places = slice(None) if position is None else subject.at(position)
    return _assign((places, index), _replacement(gathered, way)[:, places])


def _edge_edit(subject: Subject, edge: Edge, other: Float[np.ndarray, "input head query key"]) -> Edit:
    query, key = subject.at(edge.query), subject.at(edge.key)
    wanted = torch.tensor(other[:, :, edge.query, edge.key])

    def edit(pattern: torch.Tensor, rows: slice) -> None:
        replace_attention(pattern[rows, :, query], key, wanted.to(pattern.dtype))

    return edit


def replace_attention(row: torch.Tensor, key: int, wanted: torch.Tensor) -> None:
    """Sets the attention `[..., key]` of a row to one key; the others keep their proportions, the row its sum.

    A row that attends to nothing else has nothing to share out: it loses what the key loses.
    """
    total = row.sum(dim=-1)
    rest = total - row[..., key]
    has_rest = rest > ROUNDING
    factor = torch.where(has_rest, (total - wanted) / torch.where(has_rest, rest, 1), 0)
    row *= factor[..., None]
    row[..., key] = wanted


def _replacement(activation: np.ndarray, way: str) -> np.ndarray:
    """What takes the place of an activation `[input, ...]`."""
    if way == "zero":
        return np.zeros_like(activation)
    if way == "mean":
        return np.broadcast_to(activation.mean(axis=0), activation.shape)
    return activation[derangement(len(activation), np.random.default_rng(0))]


def _assign(place: tuple, value: np.ndarray) -> Edit:
    """Puts a value at a place behind the input axis."""
    tensor = torch.as_tensor(np.ascontiguousarray(value))

    def edit(activation: torch.Tensor, rows: slice) -> None:
        activation[(rows, *place)] = tensor.to(activation.dtype)

    return edit


def _whole_batch(edit: Edit) -> Callable[..., torch.Tensor]:
    def hook_function(value: torch.Tensor, hook: object) -> torch.Tensor:
        value = value.clone()
        edit(value, slice(None))
        return value

    return hook_function


def _fewer(subject: Subject, most_answers: int) -> Subject:
    return subject.first(max(2, most_answers // subject.targets.shape[1]))


def _mean_attention(subject: Subject, edge: Edge) -> float:
    heads = subject.heads_of(edge.layer)
    return float(subject.pattern(edge.layer)[:, heads, edge.query, edge.key].mean())
