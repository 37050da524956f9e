"""Coordinates in which every change of basis of a model is a rotation: those in which its stream has unit spread.

A trained model has noise along directions that hardly anything reads. Unit spread would make as much of it as of
what the model computes with, so such directions are left out.

A residual stream may be written in any basis, an oblique one as well, and what is orthogonal in one is not in
another. Subspaces are therefore found, projected and drawn at random in whitened coordinates, and carried back.
So a projection onto a subspace leaves out what other subspaces hold, though they may not be orthogonal to it: it
reads with the dual basis.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from rasplens.model.interventions import Subspace

SPREAD = 1e-4
"""A stream varies along a direction if its spread there is at least this share of that along the widest; less is
rounding."""

NOISE = 1e-2
"""Smallest spread along a direction that nothing reads, as a share of the widest; less is noise and dropped.

In a basis that is oblique by more than its inverse, what is computed with and not read alone may look like noise.
"""

READ = 1e-2
"""A direction is read if what its spread does to readings is at least this share of the most that one does."""


NEW = 0.1
"""An input's activation gives an axis if at least this share of it lies outside of the axes before."""

Subspaces = Mapping[int, Subspace]
"""By the task's position."""


@dataclass(frozen=True, eq=False)
class Whitened:
    """The coordinates in which a stream has unit spread in all directions along which it varies.

    Attributes:
        to: From the stream to them: `[width, axis]`.
        back: From them to the stream: `[axis, width]`.
        read: Directions along which something reads them, orthonormal: `[axis, read]`.
    """

    to: Float[np.ndarray, "width axis"]
    back: Float[np.ndarray, "axis width"]
    read: Float[np.ndarray, "axis read"]

    @property
    def n_axes(self) -> int:
        """How many directions the stream varies along."""
        return int(self.to.shape[1])

    def subspace(self, basis: Float[np.ndarray, "axis rank"]) -> Subspace:
        """The subspace of an orthonormal basis in these coordinates."""
        return Subspace(self.to @ basis, self.back.T @ basis)

    def random(self, rank: int, rng: np.random.Generator) -> Subspace:
        """A random subspace, of as many directions as there are at most."""
        return self.subspace(np.linalg.qr(rng.normal(size=(self.n_axes, min(rank, self.n_axes))))[0])


def whitened(
    stream: Float[np.ndarray, "input width"], read: Float[np.ndarray, "width reading"] | None = None
) -> Whitened:
    """The whitened coordinates of a stream, along axes that go with any change of its basis.

    The axes are what the inputs themselves span, one after the other: each is the part of an input's activation
    that is orthogonal to the axes before. What is drawn at random or searched for in these coordinates is the same
    whatever basis the weights are written in.

    Args:
        stream: On several inputs.
        read: What is read of it, in columns; None stands for all.
    """
    centred = stream.astype(np.float64) - stream.mean(axis=0)
    sizes, directions = np.linalg.eigh(centred.T @ centred / len(stream))
    varied = _varied(sizes)
    spreads, directions = np.sqrt(sizes[varied]), directions[:, varied]
    to, back = directions / spreads, (directions * spreads).T
    seen, rest = (np.eye(len(back)), np.zeros((len(back), 0))) if read is None else _split(back @ read)
    # Where nothing reads, directions by how wide the stream is along them: of these alone it is asked whether
    # they are noise.
    squares, turned = np.linalg.eigh(rest.T @ (spreads[:, None] ** 2 * rest))
    kept = np.column_stack([seen, rest @ turned[:, squares > (NOISE * spreads.max(initial=0)) ** 2]])
    axes = _frame(centred @ to @ kept)
    return Whitened(to @ kept @ axes, axes.T @ kept.T @ back, axes.T @ kept.T @ seen)


def n_axes(stream: Float[np.ndarray, "input width"]) -> int:
    """Along how many directions a stream varies."""
    centred = stream.astype(np.float64) - stream.mean(axis=0)
    return int(_varied(np.linalg.eigvalsh(centred.T @ centred / len(stream))).sum())


def _varied(squares: Float[np.ndarray, " axis"]) -> Bool[np.ndarray, " axis"]:
    return squares > SPREAD**2 * squares.max(initial=0)


def _split(
    effects: Float[np.ndarray, "axis reading"],
) -> tuple[Float[np.ndarray, "axis read"], Float[np.ndarray, "axis unread"]]:
    """An orthonormal basis of the axes that move readings, and one of the others."""
    squares, directions = np.linalg.eigh(effects @ effects.T)
    is_read = squares > READ**2 * squares.max(initial=0)
    return directions[:, is_read], directions[:, ~is_read]


def _frame(points: Float[np.ndarray, "input axis"]) -> Float[np.ndarray, "axis axis"]:
    """An orthonormal basis of what points span, by Gram and Schmidt, in columns."""
    n_axes = points.shape[1]
    squares, axes = (points**2).sum(axis=1), np.zeros((n_axes, 0))
    rest = squares.copy()
    while axes.shape[1] < n_axes:
        new = rest > NEW**2 * squares
        if not new.any():  # what is left is hardly spanned: its axes are as they come
            return np.column_stack([axes, np.linalg.svd(axes)[0][:, axes.shape[1] :]])
        axis = points[new.argmax()]
        for _ in range(2):  # once more, against rounding
            axis = axis - axes @ (axes.T @ axis)
        axis /= np.linalg.norm(axis)
        axes = np.column_stack([axes, axis])
        rest -= (points @ axis) ** 2
    return axes
