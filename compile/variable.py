"""A variable of a compiled model: where the residual stream holds an s-op, and what its coordinates stand for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compile.errors import UndefinedValue
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.values import as_number, value_key
from rasplens.errors import RaspLensError
from rasplens.model.interventions import Subspace, whole
from rasplens.model.twins.change_of_basis import ChangeOfBasis

TOLERANCE = 0.25
"""How far a number may be off from one of its values, as a fraction of the gap to the next."""

PRESENT = 0.5 + 2.0**-6
"""The least share of a value, or of being defined at all, that is taken for it. Half of one value and half of
another is neither, whichever way it is rounded; no other share of few values lies here."""


@dataclass(frozen=True, eq=False)
class Axes:
    """Directions that are axes of the residual stream.

    Attributes:
        directions: Their numbers.
    """

    directions: Int[np.ndarray, " direction"]


@dataclass(frozen=True, eq=False)
class ObliqueDirections:
    """Directions that are no axes, in the stream of a disguised model.

    Attributes:
        writes: The vectors themselves, not orthogonal in general: `[direction, d_model]`.
        reads: What gives their coefficients in a residual stream, and 0 for all other directions of the model.
    """

    writes: Float[np.ndarray, "direction d_model"]
    reads: Float[np.ndarray, "d_model direction"]


@dataclass(frozen=True, eq=False)
class Variable:
    """An s-op as the residual stream holds it.

    Attributes:
        name: As in the program.
        encoding: One coordinate per value, or one for the number (then a second if it can be undefined).
        values: What it can be; a value's place is its code.
        columns: What to multiply the residual stream by to read it: `[d_model, width]`. Of a variable with
            directions of its own these are unit vectors; of a map of another one, sums of that one's. A
            disguise changes them with the stream, so that they read the same.
        place: The directions of the residual stream that it is read from.
        written_at: The hook point of the residual stream from which on it is there.
        is_view: Whether it has no directions of its own but follows from those of others.
        is_auxiliary: Whether it is none of the program's s-ops but a step that the compiler takes.
        kind_of: The s-op of which it is only what its readers tell apart; None if it is no such kind.
    """

    name: str
    encoding: Encoding
    values: tuple[Value, ...]
    columns: Float[np.ndarray, "d_model _"]
    place: Axes | ObliqueDirections
    written_at: str
    is_view: bool = False
    is_auxiliary: bool = False
    kind_of: str | None = None

    @property
    def is_own(self) -> bool:
        """Whether it is one of the program's s-ops, and has directions of its own."""
        return not (self.is_view or self.is_auxiliary)

    def read(self, residual: Float[np.ndarray, "*batch d_model"]) -> Float[np.ndarray, "*batch width"]:
        """Its coordinates in some residual streams."""
        return residual[..., self._rows] @ self.columns[self._rows]

    @cached_property
    def _rows(self) -> Int[np.ndarray, " direction"]:
        """The axes of the residual stream that it is read from at all: of a wide stream, mostly few."""
        return np.flatnonzero(self.columns.any(axis=1))

    @property
    def directions(self) -> Int[np.ndarray, " direction"]:
        """The axes of the residual stream that it is read from.

        Raises:
            RaspLensError: If they are none, as in a disguised model.
        """
        if isinstance(self.place, ObliqueDirections):
            raise RaspLensError(
                f"{self.name!r} lies along no axes of the residual stream: its model is disguised. Use `read` for "
                "its coordinates, or `projector` for its part of a stream."
            )
        return self.place.directions

    @property
    def projector(self) -> Float[np.ndarray, "d_model d_model"]:
        """The matrix that projects a residual stream onto the variable's directions."""
        return self.subspace.read @ self.subspace.write.T

    @property
    def subspace(self) -> Subspace:
        """Its directions of the residual stream, with coordinates in them."""
        if isinstance(self.place, ObliqueDirections):
            return Subspace(self.place.reads, self.place.writes.T)
        return whole(len(self.columns), self.place.directions)

    def __repr__(self) -> str:
        place = (
            "turned"
            if isinstance(self.place, ObliqueDirections)
            else f"directions {self.place.directions.tolist()}"
        )
        return f"<Variable {self.name!r}: {self.encoding.value}, {len(self.values)} values, {place}>"

    def in_basis(self, change: ChangeOfBasis) -> "Variable":
        """Return the variable where the residual stream has another basis."""
        place = self.place if not change.is_turned else _turned(self.place, change)
        return replace(self, columns=change.reads @ self.columns, place=place)

    def code(self, value: Value) -> int:
        """The place of a value among `values`; for a number, 2 and 2.0 are one.

        Raises:
            KeyError: If the variable cannot be that.
        """
        held = as_number(value) if self.encoding is Encoding.NUMERICAL else value
        if value_key(held) not in self._codes:
            raise KeyError(f"{self.name!r} is never {value!r}.")
        return self._codes[value_key(held)]

    @cached_property
    def _codes(self) -> Mapping[tuple[Any, ...], int]:
        return {value_key(value): code for code, value in enumerate(self.values)}

    def decode(
        self,
        coordinates: Float[np.ndarray, "*batch width"],
        tolerance: float = TOLERANCE,
        may_mix: Bool[np.ndarray, "*#batch"] | bool = False,
    ) -> Int[np.ndarray, "*batch"]:
        """The codes that coordinates stand for; -1 where undefined.

        Args:
            coordinates: What `read` gives.
            tolerance: How far they may be off a value, in the units of `nearest`.
            may_mix: Where a mixture is undefined, and no error.

        Raises:
            UndefinedValue: If some other coordinates are a mixture, no value.
        """
        codes, errors = nearest(self, coordinates)
        is_mixture = errors > tolerance
        if (is_refused := is_mixture & ~np.asarray(may_mix)).any():
            worst = coordinates[np.unravel_index(np.argmax(np.where(is_refused, errors, 0)), errors.shape)]
            raise UndefinedValue(
                f"{self.name!r} holds a mixture of values ({_describe(self, worst)}): an aggregate averaged "
                "different values on this input. To average numbers, wrap the aggregate in numerical(...)."
            )
        return np.where(is_mixture, -1, codes)


def nearest(
    variable: Variable, coordinates: Float[Any, "*batch width"], xp: ModuleType = np
) -> tuple[Int[Any, "*batch"], Float[Any, "*batch"]]:
    """The codes that coordinates are nearest to (-1: undefined), and how far off they are.

    The distance is in the units of `TOLERANCE`: at 0.5, another answer is as near.

    Args:
        variable: What they are coordinates of.
        coordinates: What `Variable.read` gives.
        xp: Their array namespace: numpy, or `jax.numpy`.
    """
    if variable.encoding is Encoding.CATEGORICAL:
        return _nearest_onehot(coordinates, xp)
    codes, errors = _nearest_number(variable, coordinates[..., 0], xp)
    if coordinates.shape[-1] == 1:
        return codes, errors
    is_defined = coordinates[..., 1] > PRESENT
    errors = xp.maximum(xp.where(is_defined, errors, 0), xp.abs(coordinates[..., 1] - is_defined))
    return xp.where(is_defined, codes, -1), errors


def _turned(place: Axes | ObliqueDirections, change: ChangeOfBasis) -> ObliqueDirections:
    if isinstance(place, Axes):
        return ObliqueDirections(change.writes[place.directions], change.reads[:, place.directions])
    return ObliqueDirections(place.writes @ change.writes, change.reads @ place.reads)


def _nearest_onehot(coordinates: Any, xp: ModuleType) -> tuple[Any, Any]:
    codes = xp.where(coordinates.max(axis=-1) > PRESENT, coordinates.argmax(axis=-1), -1)
    ideal = codes[..., None] == np.arange(coordinates.shape[-1])
    return codes, xp.abs(coordinates - ideal).max(axis=-1)


def _nearest_number(variable: Variable, numbers: Any, xp: ModuleType) -> tuple[Any, Any]:
    values = np.array([float(value) for value in variable.values])
    codes = xp.abs(numbers[..., None] - values).argmin(axis=-1)
    gaps = np.diff(values, prepend=-np.inf, append=np.inf)
    room = np.minimum(gaps[:-1], gaps[1:])
    if len(values) == 1:
        room = np.maximum(1, np.abs(values))
    values, room = xp.asarray(values), xp.asarray(room)
    return codes, xp.abs(numbers - values[codes]) / room[codes]


def _describe(variable: Variable, coordinates: np.ndarray) -> str:
    if variable.encoding is Encoding.NUMERICAL:
        return f"{coordinates[0]:.4g}, between its values"
    shares = sorted(zip(coordinates, variable.values, strict=True), key=lambda pair: -pair[0])[:3]
    return ", ".join(f"{share:.2f} of {value!r}" for share, value in shares)
