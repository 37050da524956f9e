"""Third axis: what heads, neurons and attention edges are worth, by taking them away.

Three ways: *zero* takes an output or an edge's attention away, *mean* replaces it by its mean over inputs,
*resample* by that of another input. What happens to the rest of an attention row is the same in all three: it
keeps its proportions and the row its sum (Farrell et al. 2025). An ablation is a lower bound on importance where
other parts repair the damage (McGrath et al. 2023, "The Hydra Effect"): `joint_effects` shows that. What is
critical depends on the way; all are reported.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy.special import log_softmax

from rasplens.compare.evidence.ablation.edges import Edited, attended_edges, mean_attention, without_edges
from rasplens.compare.evidence.derangements import derangement
from rasplens.compare.models.studied_model import BATCH, Head, Subject, z_point

WAYS = ("zero", "mean", "resample")

EDGE_ANSWERS = 400
"""Edges are ablated on as many inputs as have this many answers together, unless told otherwise."""

HEAD_ANSWERS = 2_000
"""Heads on more: there are few of them."""

MOST_NEURONS = 1_024
"""Models with more neurons than this are not ablated neuron by neuron."""

Edit = Callable[[torch.Tensor, slice], None]
"""Changes an activation in place, at the rows of the batch that belong to it."""


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
    keys = [{**vars(edge), "attention": mean_attention(subject, edge)} for edge in edges]

    def without(way: str) -> Iterable[Edited]:
        layers = range(subject.n_layers)
        return without_edges(
            subject, edges, {layer: _replacement(subject.pattern(layer), way) for layer in layers}
        )

    return _effects(subject, keys, without, ["layer", "query", "key", "attention"])


def _without_each(subject: Subject, edits: Sequence[tuple[str, Edit]]) -> Iterator[Edited]:
    """The logits after each edit alone; edits at one hook point share batches, on copies of the inputs."""
    together = max(1, BATCH // subject.n_inputs)
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
            yield Edited(logits.reshape(len(part), n, *logits.shape[1:]), range(logits.shape[1]))


def _effects(
    subject: Subject,
    keys: Sequence[Mapping[str, object]],
    without: Callable[[str], Iterable[Edited]],
    columns: Sequence[str] = (),
) -> Effects:
    table = pd.DataFrame(keys, columns=list(columns) or None)
    lost = {}
    right, targets = subject.right(), subject.targets
    clean = _log_probabilities(subject, subject.clean_logits)
    sure = _of_targets(clean, targets)
    for way in WAYS:
        rows, probability, kl = [np.empty((0, subject.n_inputs))], [np.empty(0)], [np.empty(0)]
        for edited in without(way):
            where = edited.answers
            right_now = subject.interface.codes(edited.logits) == targets[:, where]
            rows.append((right[:, where].astype(int) - right_now).sum(axis=-1) / targets.shape[1])
            after = _log_probabilities(subject, edited.logits)
            gone = sure[:, where] - _of_targets(after, targets[:, where])
            probability.append(gone.sum(axis=(1, 2)) / targets.size)
            kl.append(_divergence(clean[:, where], after).sum(axis=(1, 2)) / targets.size)
        lost[way] = np.concatenate(rows)
        table[way] = lost[way].mean(axis=1)
        table[f"{way}_probability"], table[f"{way}_kl"] = np.concatenate(probability), np.concatenate(kl)
    return Effects(table, lost)


def _log_probabilities(
    subject: Subject, logits: Float[np.ndarray, "*batch logit"]
) -> Float[np.ndarray, "*batch answer"]:
    """Of the task's answers; -inf for those that the model cannot give, NaN if it can give none."""
    columns = subject.interface.columns
    given = np.zeros(0, dtype=int) if columns is None else np.flatnonzero(columns >= 0)
    if columns is None or not given.size:
        return np.full((*logits.shape[:-1], len(subject.task.outputs)), np.nan)
    found = log_softmax(logits[..., columns[given]].astype(np.float64), axis=-1)
    if len(given) == len(columns):
        return found
    everything = np.full((*logits.shape[:-1], len(columns)), -np.inf)
    everything[..., given] = found
    return everything


def _divergence(
    clean: Float[np.ndarray, "input answer code"], edited: Float[np.ndarray, "edit input answer code"]
) -> Float[np.ndarray, "edit input answer"]:
    """In nats, by the logarithms: a probability that underflows is not infinitely far away."""
    difference = np.subtract(clean, edited, out=np.zeros_like(edited), where=~np.isneginf(edited))
    return (np.exp(clean) * difference).sum(axis=-1)


def _of_targets(
    log_probabilities: Float[np.ndarray, "*batch input answer code"], targets: Int[np.ndarray, "input answer"]
) -> Float[np.ndarray, "*batch input answer"]:
    """The probability of the right answers."""
    place = np.broadcast_to(targets, log_probabilities.shape[:-1])[..., None]
    return np.exp(np.take_along_axis(log_probabilities, place, axis=-1)[..., 0])


def _head_edit(subject: Subject, head: Head, way: str, position: int | None = None) -> Edit:
    layer, index = head
    gathered = subject.whole_gathered(layer)[:, :, index]
    places = slice(None) if position is None else subject.at(position)
    return _assign((places, index), _replacement(gathered, way)[:, places])


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
