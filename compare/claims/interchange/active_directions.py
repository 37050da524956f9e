"""Which part of what an interchange changes is read and goes along with the variable, and which is a dormant path.

An interchange along a direction that is half read and half not can work by an illusion: the half that is not
read goes with the variable, and calls up, in the half that is read, what the variable itself never does there: a
dormant path (Makelov et al. 2023, "Is This the Subspace You Are Looking for?", section 3). So what an interchange
changes is split: what nothing reads, what is read and moves with the variable, and what is read and does not. The
second part has to do alone what all do together.

What is read alone, whatever it moves with, would be no test: where a neuron reads the sum of two variables, it
takes half of the other one along.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from rasplens.compare.claims.interchange.coordinates import Subspaces, Whitened
from rasplens.model.interventions import Subspace

SMALLEST = 1e-3
"""Smallest part of a direction that counts as read, where the variable moves the stream along it."""


def split(
    subspaces: Subspaces, axes: Mapping[int, Whitened], moved: Subspaces
) -> tuple[dict[int, Subspace], dict[int, Subspace]]:
    """Split what is read of subspaces: the active part, along which the variable moves the stream, and the rest.

    Args:
        subspaces: By position, those that are interchanged.
        axes: The whitened coordinates of the stream there, in which all is projected.
        moved: The directions along which the variable moves the stream, where there are any.

    Returns:
        By position, the same coordinates with what their active, and their dormant, part writes.
    """
    active, dormant = {}, {}
    for position, subspace in subspaces.items():
        own = axes[position]
        seen = _onto(own.read, own.to.T @ subspace.write)
        movement = own.to.T @ moved[position].write if position in moved else seen[:, :0]
        part = _onto(_span(_onto(own.read, movement)), seen)
        active[position] = Subspace(subspace.read, own.back.T @ part)
        dormant[position] = Subspace(subspace.read, own.back.T @ (seen - part))
    return active, dormant


def _onto(basis: Float[np.ndarray, "axis rank"], vectors: Float[np.ndarray, "axis vector"]) -> np.ndarray:
    """The projections of vectors onto a subspace."""
    return np.asarray(basis @ (basis.T @ vectors))


def _span(columns: Float[np.ndarray, "axis column"]) -> Float[np.ndarray, "axis rank"]:
    """An orthonormal basis of the span of columns, without directions along which they are small."""
    directions, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return directions[:, sizes > SMALLEST]
