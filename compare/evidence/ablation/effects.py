"""Third axis: the ablation effects of heads, neurons and attention edges.

An ablation effect is the accuracy that a model loses without a part. There are three ablation methods. *Zero*
takes an output or an edge's attention away. *Mean* replaces it by its mean over inputs. *Resample* replaces it by
that of another input. What happens to the rest of an attention row is the same in all three: it keeps its
proportions and the row its sum (Farrell et al. 2025). An ablation is a lower bound on importance where other parts
repair the damage (McGrath et al. 2023, "The Hydra Effect"): `joint_effects` shows that. What is critical depends
on the method; all are reported.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy.special import log_softmax

from rasplens.compare.config import CompareConfig
from rasplens.compare.evidence.ablation.edges import Edited, attended_edges, mean_attention, without_edges
from rasplens.compare.evidence.derangements import derangement
from rasplens.compare.models.studied_model import BATCH, Head, StudiedModel, z_point
from rasplens.model import random_streams

Method = Literal["zero", "mean", "resample"]

METHODS: tuple[Method, ...] = get_args(Method)

STANDARD = CompareConfig()

Edit = Callable[[torch.Tensor, slice], None]
"""Changes an activation in place, at the rows of the batch that belong to it."""


@dataclass(frozen=True, eq=False)
class Effects:
    """Ablation effects.

    Attributes:
        table: One row per thing ablated. For every method: under its name, the drop in token accuracy;
            `method_probability`, the drop in the probability of the right answer; `method_kl`, the divergence of
            the answers from what they were, in nats. Both are NaN for a model that answers with numbers.
        drops: By method, the accuracy drop on each input: `[row, input]`.
    """

    table: pd.DataFrame
    drops: Mapping[Method, Float[np.ndarray, "row input"]]


def head_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> Effects:
    """The ablation effect of each head: rows layer, head."""
    studied = _fewer(studied, config.head_answers)
    keys = [{"layer": layer, "head": head} for layer, head in studied.heads]

    def edits(method: Method) -> list[tuple[str, Edit]]:
        return [(z_point(head[0]), _head_edit(studied, head, method, seed)) for head in studied.heads]

    return _effects(studied, keys, lambda method: _without_each(studied, edits(method)))


def head_position_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> Effects:
    """The ablation effect of each head at each position: rows layer, head, position."""
    studied = _fewer(studied, config.edge_answers)
    cells = list(itertools.product(studied.heads, range(studied.n_pos)))
    keys = [{"layer": head[0], "head": head[1], "position": position} for head, position in cells]

    def edits(method: Method) -> list[tuple[str, Edit]]:
        return [(z_point(head[0]), _head_edit(studied, head, method, seed, position)) for head, position in cells]

    return _effects(studied, keys, lambda method: _without_each(studied, edits(method)))


def joint_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> pd.DataFrame:
    """The ablation effects of pairs of heads.

    Returns:
        Columns first, second, and for every method the accuracy drop, and how much larger it is than the sum of
        both alone (`method_repaired`): above 0, each head stands in for the other.
    """
    studied = _fewer(studied, config.edge_answers)
    right = float(studied.right().mean())

    def drop(heads: Sequence[Head], method: Method) -> float:
        hooks = [(z_point(head[0]), _whole_batch(_head_edit(studied, head, method, seed))) for head in heads]
        edited = studied.vocabulary.codes(studied.logits(studied.tokens, hooks))
        return right - float((edited == studied.targets).mean())

    alone = {(head, method): drop([head], method) for head in studied.heads for method in METHODS}
    rows = []
    for first, second in itertools.combinations(studied.heads, 2):
        row: dict[str, object] = {"first": f"L{first[0]}H{first[1]}", "second": f"L{second[0]}H{second[1]}"}
        for method in METHODS:
            row[method] = both = drop([first, second], method)
            row[f"{method}_repaired"] = both - alone[first, method] - alone[second, method]
        rows.append(row)
    columns = ["first", "second", *(f"{method}{end}" for method in METHODS for end in ("", "_repaired"))]
    return pd.DataFrame(rows, columns=columns)


def neuron_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> Effects:
    """The ablation effect of each neuron: rows layer, neuron; none for a model without neurons, or too many."""
    studied = _fewer(studied, config.neuron_answers)
    points = {layer: f"blocks.{layer}.mlp.hook_post" for layer in range(studied.n_layers)}
    points = {layer: point for layer, point in points.items() if point in studied.model.hook_dict}
    cache = studied.cache(points.values())
    neurons = [(layer, i) for layer, point in points.items() for i in range(cache[point].shape[-1])]
    if len(neurons) > config.most_neurons:
        neurons = []
    keys = [{"layer": layer, "neuron": i} for layer, i in neurons]

    def edits(method: Method) -> list[tuple[str, Edit]]:
        other = {layer: _replacement(cache[point], method, seed) for layer, point in points.items()}
        return [(points[layer], _assign((slice(None), i), other[layer][..., i])) for layer, i in neurons]

    return _effects(studied, keys, lambda method: _without_each(studied, edits(method)), ["layer", "neuron"])


def edge_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> Effects:
    """The ablation effect of each attention edge: rows layer, query, key, and attention (its mean)."""
    studied = _fewer(studied, config.edge_answers)
    edges = attended_edges(studied, config.relevance_inputs)
    keys = [{**vars(edge), "attention": mean_attention(studied, edge)} for edge in edges]

    def without(method: Method) -> Iterable[Edited]:
        layers = range(studied.n_layers)
        return without_edges(
            studied, edges, {layer: _replacement(studied.pattern(layer), method, seed) for layer in layers}
        )

    return _effects(studied, keys, without, ["layer", "query", "key", "attention"])


def _without_each(studied: StudiedModel, edits: Sequence[tuple[str, Edit]]) -> Iterator[Edited]:
    """The logits after each edit alone; edits at one hook point share batches, on copies of the inputs."""
    together = max(1, BATCH // studied.n_inputs)
    for point, group in itertools.groupby(edits, key=lambda edit: edit[0]):
        own = [edit for _, edit in group]
        for start in range(0, len(own), together):
            part, n = own[start : start + together], studied.n_inputs

            def apply(value: torch.Tensor, hook: object, part: Sequence[Edit] = part, n: int = n) -> torch.Tensor:
                value = value.clone()
                for i, edit in enumerate(part):
                    edit(value, slice(i * n, (i + 1) * n))
                return value

            logits = studied.logits(studied.tokens.repeat(len(part), 1), [(point, apply)])
            yield Edited(logits.reshape(len(part), n, *logits.shape[1:]), range(logits.shape[1]))


def _effects(
    studied: StudiedModel,
    keys: Sequence[Mapping[str, object]],
    without: Callable[[Method], Iterable[Edited]],
    columns: Sequence[str] = (),
) -> Effects:
    table = pd.DataFrame(keys, columns=list(columns) or None)
    drops: dict[Method, np.ndarray] = {}
    right, targets = studied.right(), studied.targets
    clean = _log_probabilities(studied, studied.clean_logits)
    sure = _of_targets(clean, targets)
    for method in METHODS:
        rows, probability, kl = [np.empty((0, studied.n_inputs))], [np.empty(0)], [np.empty(0)]
        for edited in without(method):
            where = edited.answers
            right_now = studied.vocabulary.codes(edited.logits) == targets[:, where]
            rows.append((right[:, where].astype(int) - right_now).sum(axis=-1) / targets.shape[1])
            after = _log_probabilities(studied, edited.logits)
            gone = sure[:, where] - _of_targets(after, targets[:, where])
            probability.append(gone.sum(axis=(1, 2)) / targets.size)
            kl.append(_divergence(clean[:, where], after).sum(axis=(1, 2)) / targets.size)
        drops[method] = np.concatenate(rows)
        table[method] = drops[method].mean(axis=1)
        table[f"{method}_probability"], table[f"{method}_kl"] = np.concatenate(probability), np.concatenate(kl)
    return Effects(table, drops)


def _log_probabilities(
    studied: StudiedModel, logits: Float[np.ndarray, "*batch logit"]
) -> Float[np.ndarray, "*batch answer"]:
    """Of the task's answers; -inf for those that the model cannot give, NaN if it can give none."""
    columns = studied.vocabulary.columns
    given = np.zeros(0, dtype=int) if columns is None else np.flatnonzero(columns >= 0)
    if columns is None or not given.size:
        return np.full((*logits.shape[:-1], len(studied.task.outputs)), np.nan)
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


def _head_edit(studied: StudiedModel, head: Head, method: Method, seed: int, position: int | None = None) -> Edit:
    layer, index = head
    gathered = studied.whole_gathered(layer)[:, :, index]
    places = slice(None) if position is None else studied.at(position)
    return _assign((places, index), _replacement(gathered, method, seed)[:, places])


def _replacement(activation: np.ndarray, method: Method, seed: int) -> np.ndarray:
    """What takes the place of an activation `[input, ...]`."""
    if method == "zero":
        return np.zeros_like(activation)
    if method == "mean":
        return np.broadcast_to(activation.mean(axis=0), activation.shape)
    return activation[derangement(len(activation), random_streams.rng(seed, "resample ablation"))]


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


def _fewer(studied: StudiedModel, most_answers: int) -> StudiedModel:
    return studied.first(max(2, most_answers // studied.targets.shape[1]))
