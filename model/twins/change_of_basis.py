"""Changes of the residual stream's basis or width, by the weights that read it and those that write to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

Array = Any
"""numpy's or JAX's."""

READS = ("W_Q", "W_K", "W_V", "W_in", "W_U")
"""Their last axis but one is d_model."""

WRITES = ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out")
"""Their last axis is d_model."""


def on_residual(
    weights: Mapping[str, Array], read: Callable[[Array], Array], write: Callable[[Array], Array]
) -> dict[str, Array]:
    """Weights in which everything that reads the residual stream, and everything that writes to it, is changed.

    Args:
        weights: A transformer's, by name.
        read: From an array `[..., d_model, n]` to what takes its place.
        write: From an array `[..., d_model]` to what takes its place.
    """
    return {
        name: read(array) if name.endswith(READS) else write(array) if name.endswith(WRITES) else array
        for name, array in weights.items()
    }


@dataclass(frozen=True, eq=False)
class ChangeOfBasis:
    """Another basis of the residual stream, or more directions: a stream x becomes `x @ writes`.

    Attributes:
        writes: What each old direction becomes: `[d_model, d_new]`.
        reads: How each old direction is read from the new stream, so that `writes @ reads` is the identity.
        is_turned: Whether old directions are no longer new ones of the same number.
    """

    writes: Float[np.ndarray, "d_model d_new"]
    reads: Float[np.ndarray, "d_new d_model"]
    is_turned: bool

    def then(self, other: "ChangeOfBasis") -> "ChangeOfBasis":
        """This change, and another one after it."""
        return ChangeOfBasis(
            self.writes @ other.writes, other.reads @ self.reads, self.is_turned or other.is_turned
        )


def widening(width: int, extra: int) -> ChangeOfBasis:
    """Return the change to a wider stream: all directions stay, and the further ones hold nothing."""
    writes = np.eye(width, width + extra)
    return ChangeOfBasis(writes, writes.T, is_turned=False)


def rotation(width: int, rng: np.random.Generator) -> ChangeOfBasis:
    """A random orthogonal basis."""
    turn = random_rotation(width, rng)
    return ChangeOfBasis(turn, turn.T, is_turned=True)


def oblique(width: int, condition: float, rng: np.random.Generator) -> ChangeOfBasis:
    """A random basis that is not orthogonal, of a condition number.

    Singular values s lie evenly in their logarithm, from condition^-1/2 to condition^1/2, between random
    rotations: the new stream is `x U diag(s) Vᵀ`, read by `V diag(1/s) Uᵀ`.

    Args:
        width: Of the residual stream; one direction has condition number 1 whatever is asked.
        condition: The largest singular value by the least one, at least 1.
        rng: Where the rotations come from.
    """
    left, right = random_rotation(width, rng), random_rotation(width, rng)
    sizes = np.geomspace(condition**-0.5, condition**0.5, width)
    return ChangeOfBasis(left * sizes @ right.T, right / sizes @ left.T, is_turned=True)


def random_rotation(n: int, rng: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """A rotation or reflection, uniformly distributed (Mezzadri 2007, "How to generate random matrices")."""
    orthogonal, upper = np.linalg.qr(rng.normal(size=(n, n)))
    return orthogonal * np.sign(np.diag(upper))


def in_basis(weights: Mapping[str, np.ndarray], change: ChangeOfBasis) -> dict[str, np.ndarray]:
    """The weights of the transformer that computes the same in another basis of its residual stream."""
    return on_residual(weights, lambda array: change.reads @ array, lambda array: array @ change.writes)
