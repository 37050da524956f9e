"""The whitened coordinates of a model's residual stream, and what the rest of the model reads there."""

import itertools
from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.evidence.interchange.coordinates import Whitened, whitened
from rasplens.compare.models.studied_model import StudiedModel

N_INPUTS = 32
"""Inputs on which it is asked what is read: layer norms read other directions on each."""

TIMES = 2
"""Random readings for every direction of the stream: as many span what is read, with room to spare."""

SEED = 0
"""Of the random readings: the same of every model, so that they go with any change of its basis."""

_KNOWN: WeakKeyDictionary[StudiedModel, dict[str, Mapping[int, Whitened]]] = WeakKeyDictionary()


def stream_axes(studied: StudiedModel, point: str) -> Mapping[int, Whitened]:
    """The whitened coordinates of a model's stream at a hook point, by the task's position.

    They are found once for each model.
    """
    known = _KNOWN.setdefault(studied, {})
    if point not in known:
        stream, read = studied.activation(point), readings(studied, point, range(studied.n_pos))
        known[point] = {position: whitened(stream[:, position], read[position]) for position in read}
    return known[point]


def readings(
    studied: StudiedModel, point: str, positions: Sequence[int]
) -> dict[int, Float[np.ndarray, "d_model reading"]]:
    """What is read of the stream, by position: readings, strongest of length 1, `[d_model, reading]`.

    Read is what changes a query, a key, a value, a neuron or an answer when the stream changes by ever so little:
    the row space of the weights that read, and of what norms make of it. Whether an attention pattern is too
    saturated to move with its queries makes no difference.

    Args:
        studied: The model.
        point: A hook point of its residual stream.
        positions: Of the task.
    """
    few, changes, seen_at = studied.first(N_INPUTS), [], []

    def change(stream: torch.Tensor, hook: object) -> torch.Tensor:
        changes.append(torch.zeros_like(stream, requires_grad=True))
        return stream + changes[-1]

    def keep(value: torch.Tensor, hook: object) -> torch.Tensor:
        seen_at.append(value)
        return value

    answers = few.run([(point, change), *((name, keep) for name in _reading_points(few))])
    (changed,), generator = changes, torch.Generator().manual_seed(SEED)
    values = [value for value in (*seen_at, answers) if value.requires_grad]

    def back(values: Sequence[torch.Tensor], sizes: Sequence[float]) -> torch.Tensor:
        """What random readings of values see of the stream: `[input, ctx, d_model]`."""
        drawn = [torch.randn(value.shape, generator=generator, dtype=value.dtype) for value in values]
        weights = [weight / size for weight, size in zip(drawn, sizes, strict=True)]
        (seen,) = torch.autograd.grad(values, [changed], weights, retain_graph=True, allow_unused=True)
        return torch.zeros_like(changed) if seen is None else seen

    # Weights that read differ in size by orders of magnitude; what each of them reads counts alike.
    sizes = [float(back([value], [1.0]).norm(dim=-1).max()) for value in values]
    read = [(value, size) for value, size in zip(values, sizes, strict=True) if size > 0]
    rounds = -(-TIMES * changed.shape[-1] // few.n_inputs) if read else 0
    found = [back(*zip(*read, strict=True)) for _ in range(rounds)]
    rows = torch.cat(found).numpy() if found else np.zeros((1, *changed.shape[1:]))
    rows = np.moveaxis(rows[:, [studied.at(position) for position in positions]], 1, 0)
    strongest = np.linalg.norm(rows, axis=-1).max(axis=-1)[:, None, None]
    shares = rows / np.where(strongest > 0, strongest, 1)
    return {position: share.T for position, share in zip(positions, shares, strict=True)}


def _reading_points(studied: StudiedModel) -> list[str]:
    """The hook points of what a model reads: queries, keys, values, and neurons, or what these come to."""
    points = studied.model.hook_dict
    read = [
        f"blocks.{layer}.attn.hook_{name}" for layer, name in itertools.product(range(studied.n_layers), "qkv")
    ]
    for layer in range(studied.n_layers):
        pre = f"blocks.{layer}.mlp.hook_pre"
        read.append(pre if pre in points else f"blocks.{layer}.hook_mlp_out")
    return [name for name in read if name in points]
