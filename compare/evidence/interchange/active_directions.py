"""Which directions of the residual stream the rest of a model reads, and along which a variable moves them.

An interchange along a direction that is half read and half not can work by an illusion: the half that is not
read goes with the variable, and calls up, in the half that is read, what the variable itself never does there: a
dormant path (Makelov et al. 2023, "Is This the Subspace You Are Looking for?", section 3). So what an interchange
changes is split: what nothing reads, what is read and moves with the variable, and what is read and does not. The
second part has to do alone what all do together.

What is read alone, whatever it moves with, would be no test: where a neuron reads the sum of two variables, it
takes half of the other one along.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.evidence.interchange.coordinates import Subspace, Subspaces, Whitened
from rasplens.compare.models.studied_model import StudiedModel

N_INPUTS = 32
"""Inputs on which it is asked what is read: layer norms read other directions on each."""

TIMES = 2
"""Random readings for every direction of the stream: as many span what is read, with room to spare."""

WEAKEST = 1e-4
"""A direction is read if its share of the strongest reading is larger; below is rounding."""

SMALLEST = 1e-3
"""What is read of a direction along which a variable moves the stream is none if it is smaller."""


def read_directions(
    studied: StudiedModel, point: str, positions: list[int], seed: int
) -> dict[int, Float[np.ndarray, "d_model read"]]:
    """What is read of the stream, by position: readings, strongest of length 1, `[d_model, reading]`.

    Read is what changes a query, a key, a value, a neuron or an answer when the stream changes by ever so little:
    the row space of the weights that read, and of what norms make of it. Whether an attention pattern is too
    saturated to move with its queries makes no difference.

    Args:
        studied: The model.
        point: A hook point of its residual stream.
        positions: Of the task.
        seed: Of the random readings.
    """
    few, changes, readings = studied.first(N_INPUTS), [], []

    def change(stream: torch.Tensor, hook: object) -> torch.Tensor:
        changes.append(torch.zeros_like(stream, requires_grad=True))
        return stream + changes[-1]

    def keep(value: torch.Tensor, hook: object) -> torch.Tensor:
        readings.append(value)
        return value

    answers = few.run([(point, change), *((name, keep) for name in _reading_points(few))])
    (changed,), generator = changes, torch.Generator().manual_seed(seed)
    values = [value for value in (*readings, answers) if value.requires_grad]

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


def split(
    subspaces: Subspaces,
    axes: Mapping[int, Whitened],
    read: Mapping[int, np.ndarray],
    moved: Subspaces,
) -> tuple[dict[int, Subspace], dict[int, Subspace]]:
    """What is read of subspaces: the active part, along which the variable moves the stream, and the dormant one.

    Args:
        subspaces: By position, those that are interchanged.
        axes: The whitened coordinates of the stream there, in which all is projected.
        read: What is read there, as `read_directions` gives it.
        moved: The directions along which the variable moves the stream, where there are any.

    Returns:
        By position, the same coordinates with what their active, and their dormant, part writes.
    """
    active, dormant = {}, {}
    for position, subspace in subspaces.items():
        own = axes[position]
        directions = _span(_strongest_of_one(own.back @ read[position]), WEAKEST)
        seen = _onto(directions, own.to.T @ subspace.write)
        movement = own.to.T @ moved[position].write if position in moved else seen[:, :0]
        part = _onto(_span(_onto(directions, movement), SMALLEST), seen)
        active[position] = Subspace(subspace.read, own.back.T @ part)
        dormant[position] = Subspace(subspace.read, own.back.T @ (seen - part))
    return active, dormant


def _onto(basis: Float[np.ndarray, "d_model rank"], vectors: Float[np.ndarray, "d_model vector"]) -> np.ndarray:
    """The projections of vectors onto a subspace."""
    return np.asarray(basis @ (basis.T @ vectors))


def _span(columns: Float[np.ndarray, "d_model column"], least: float) -> Float[np.ndarray, "d_model rank"]:
    """An orthonormal basis of the span of columns, without directions along which they are smaller."""
    directions, sizes, _ = np.linalg.svd(columns.astype(np.float64), full_matrices=False)
    return directions[:, sizes > least]


def _strongest_of_one(columns: np.ndarray) -> np.ndarray:
    return np.asarray(columns / max(np.linalg.norm(columns, axis=0).max(initial=0), np.finfo(float).tiny))


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
