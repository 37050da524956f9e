"""The layout of the residual stream: which directions hold which variable, and how to read them.

A categorical variable has one direction per value, a numerical one a single direction with its value
(and a second that is 1 where it is defined, if it can be undefined: 0 alone could be either). The
beginning-of-sequence position has a direction of its own; everything else reads as undefined there.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rasplens.compile import graph as ops
from rasplens.compile.equality import value_key
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.values import Domain, Finite

Columns = Float[np.ndarray, "d_model _"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Where everything is in the residual stream.

    Attributes:
        d_model: The number of directions.
        slices: The directions of each variable, by node id.
        bos: The direction of the beginning-of-sequence position; None if there is no such position.
        finite: The variables themselves.
        bos_content: What the variables' directions hold at the beginning-of-sequence position.
    """

    d_model: int
    slices: dict[int, slice]
    bos: int | None
    finite: Finite
    bos_content: Float[np.ndarray, " d_model"]

    @property
    def indices(self) -> int | None:
        """The node id of the positions, if the program reads them."""
        nodes = enumerate(self.finite.graph.nodes)
        return next((i for i, node in nodes if isinstance(node.op, ops.Indices)), None)

    def onehot(self, variable: int) -> Columns:
        """Reads a categorical variable: one column per value."""
        return self._blank(np.eye(self.d_model)[:, self.slices[variable]])

    def number(self, variable: int) -> Columns:
        """Reads a variable as a number, in one column: 0 where it is undefined."""
        if self._is_numerical(variable):
            return self._blank(np.eye(self.d_model)[:, self.slices[variable]][:, :1])
        values = np.array([float(value) for value in self.finite.domains[variable].values])
        return self.onehot(variable) @ values[:, None]

    def defined(self, variable: int) -> Columns:
        """Reads whether a variable is defined, in one column: 1 or 0."""
        if not self._is_numerical(variable):
            return self.onehot(variable).sum(axis=1, keepdims=True)
        if self.finite.domains[variable].is_partial:
            return self._blank(np.eye(self.d_model)[:, self.slices[variable]][:, 1:])
        return self.position()

    def truth(self, variable: int, wanted: bool) -> Columns:
        """Reads whether a categorical variable is true (or false, if that is wanted), in one column: 1 or 0."""
        holds = [bool(value) is wanted for value in self.finite.domains[variable].values]
        return self.onehot(variable) @ np.array(holds, dtype=float)[:, None]

    def position(self) -> Columns:
        """Reads 1 at every position of the sequence, which holds one token, and 0 at the BOS."""
        return self.onehot(0).sum(axis=1, keepdims=True)

    def is_bos(self) -> Columns:
        """Reads 1 at the beginning-of-sequence position and 0 elsewhere."""
        assert self.bos is not None
        return np.eye(self.d_model)[:, [self.bos]]

    def write(self, variable: int) -> Float[np.ndarray, "width d_model"]:
        """Writes a vector in a variable's own coordinates to its directions."""
        return np.eye(self.d_model)[self.slices[variable]]

    def encode(self, variable: int, value: Value) -> Float[np.ndarray, " width"]:
        """A value in the variable's own coordinates; zeros for None."""
        return encode(self.finite.domains[variable], self.finite.graph.nodes[variable].encoding, value)

    def _is_numerical(self, variable: int) -> bool:
        return self.finite.graph.nodes[variable].encoding is Encoding.NUMERICAL

    def _blank(self, columns: Columns) -> Columns:
        """The same reading, but of zeros at the beginning-of-sequence position."""
        if self.bos is not None:
            columns[self.bos] -= self.bos_content @ columns
        return columns


def lay_out(finite: Finite, has_bos: bool) -> Layout:
    """A direction for every value of every variable, in the order of the graph."""
    slices, offset = {}, 0
    for variable in finite.graph.variables:
        width = _width(finite.domains[variable], finite.graph.nodes[variable].encoding)
        slices[variable] = slice(offset, offset + width)
        offset += width
    bos = offset if has_bos else None
    d_model = offset + has_bos
    return Layout(d_model, slices, bos, finite, _bos_content(finite, slices, d_model))


def encode(domain: Domain, encoding: Encoding | None, value: Value) -> Float[np.ndarray, " width"]:
    """A value in the coordinates of its encoding; zeros for None."""
    vector = np.zeros(_width(domain, encoding))
    if value is None:
        return vector
    if encoding is Encoding.NUMERICAL:
        vector[:] = 1
        vector[0] = float(value)
    else:
        vector[domain.codes()[value_key(value)]] = 1
    return vector


def _width(domain: Domain, encoding: Encoding | None) -> int:
    if encoding is Encoding.NUMERICAL:
        return 2 if domain.is_partial else 1
    return len(domain.values)


def _bos_content(finite: Finite, slices: dict[int, slice], d_model: int) -> Float[np.ndarray, " d_model"]:
    """At the BOS, which attends to itself, a head writes what it gives to others as their fallback."""
    content = np.zeros(d_model)
    for variable, fallback in finite.fallbacks.items():
        encoding = finite.graph.nodes[variable].encoding
        content[slices[variable]] = encode(finite.domains[variable], encoding, fallback)
    return content
