"""The ablation axis: the ablation effects of heads, neurons and attention edges.

An ablation effect is the accuracy that a model loses without a part. There are three ablation methods. *Zero*
takes an output or an edge's attention away. *Mean* replaces it by its mean over inputs. *Resample* replaces it by
that of another input. What happens to the rest of an attention row is the same in all three: it keeps its
proportions and the row its sum (Farrell et al. 2025). An ablation is a lower bound on importance where other parts
repair the damage (McGrath et al. 2023, "The Hydra Effect"): `joint_effects` shows that. What is critical depends
on the method; all are reported.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd
import torch

from rasplens.compare.config import CompareConfig
from rasplens.compare.evidence.ablation.measurement import (
    METHODS,
    STANDARD,
    Edited,
    Effects,
    Method,
    ablated_heads,
    measured_effects,
    replacement,
)
from rasplens.compare.subject.studied_model import BATCH, Head, StudiedModel
from rasplens.model.hook_points import act_name
from rasplens.tasks.task import marked

Edit = Callable[[torch.Tensor, slice], None]
"""An edit that changes an activation in place, at its own rows of the batch."""


def head_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> Effects:
    """The ablation effect of each head: rows layer, head."""
    studied = studied.with_answers(config.head_answers)
    heads = ablated_heads(studied.heads, config)
    keys = [{"layer": layer, "head": head} for layer, head in heads]

    def edits(method: Method) -> list[tuple[str, Edit]]:
        return [(act_name("z", head[0]), _head_edit(studied, head, method, seed)) for head in heads]

    return measured_effects(studied, keys, lambda method: _without_each(studied, edits(method)), ["layer", "head"])


def head_position_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> Effects:
    """The ablation effect of each head at each position: rows layer, head, position."""
    studied = studied.with_answers(config.edge_answers)
    cells = list(itertools.product(ablated_heads(studied.heads, config), range(studied.n_pos)))
    keys = [{"layer": head[0], "head": head[1], "position": position} for head, position in cells]

    def edits(method: Method) -> list[tuple[str, Edit]]:
        return [
            (act_name("z", head[0]), _head_edit(studied, head, method, seed, position)) for head, position in cells
        ]

    return measured_effects(
        studied, keys, lambda method: _without_each(studied, edits(method)), ["layer", "head", "position"]
    )


def joint_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> pd.DataFrame:
    """The ablation effects of pairs of heads.

    Returns:
        Columns first, second, and for every method the accuracy drop, and how much larger it is than the sum of
        both alone (`method_repaired`): above 0, each head stands in for the other.
    """
    studied = studied.with_answers(config.edge_answers)
    right = float(studied.right().mean())

    def drop(heads: Sequence[Head], method: Method) -> float:
        hooks = [(act_name("z", head[0]), _whole_batch(_head_edit(studied, head, method, seed))) for head in heads]
        return right - float(marked(studied.codes(studied.logits(hooks)), studied.targets).mean())

    heads = ablated_heads(studied.heads, config)
    alone = {(head, method): drop([head], method) for head in heads for method in METHODS}
    rows = []
    for first, second in itertools.combinations(heads, 2):
        row: dict[str, object] = {"first": f"L{first[0]}H{first[1]}", "second": f"L{second[0]}H{second[1]}"}
        for method in METHODS:
            row[method] = both = drop([first, second], method)
            row[f"{method}_repaired"] = both - alone[first, method] - alone[second, method]
        rows.append(row)
    columns = ["first", "second", *(f"{method}{end}" for method in METHODS for end in ("", "_repaired"))]
    return pd.DataFrame(rows, columns=columns)


def neuron_effects(studied: StudiedModel, config: CompareConfig = STANDARD, seed: int = 0) -> Effects:
    """The ablation effect of each neuron: rows layer, neuron; none for a model without neurons, or too many."""
    studied = studied.with_answers(config.neuron_answers)
    points = {layer: act_name("post", layer) for layer in range(studied.n_layers)}
    points = {layer: point for layer, point in points.items() if point in studied.model.hook_dict}
    cache = studied.cache(points.values())
    neurons = [(layer, i) for layer, point in points.items() for i in range(cache[point].shape[-1])]
    if len(neurons) > config.most_neurons:
        neurons = []
    keys = [{"layer": layer, "neuron": i} for layer, i in neurons]

    def edits(method: Method) -> list[tuple[str, Edit]]:
        other = {layer: replacement(cache[point], method, seed) for layer, point in points.items()}
        return [(points[layer], _assign((slice(None), i), other[layer][..., i])) for layer, i in neurons]

    return measured_effects(
        studied, keys, lambda method: _without_each(studied, edits(method)), ["layer", "neuron"]
    )


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

            logits = studied.logits([(point, apply)], np.tile(np.arange(n), len(part)))
            yield Edited(logits.reshape(len(part), n, *logits.shape[1:]), range(logits.shape[1]))


def _head_edit(studied: StudiedModel, head: Head, method: Method, seed: int, position: int | None = None) -> Edit:
    layer, index = head
    gathered = studied.whole_gathered(layer)[:, :, index]
    places = slice(None) if position is None else studied.at(position)
    return _assign((places, index), replacement(gathered, method, seed)[:, places])


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
