"""The layout of the residual stream: which directions hold which variable, and how to read them.

A categorical variable has one direction per value, a numerical one a single direction with its value
(and a second that is 1 where it is defined, if it can be undefined: 0 alone could be either). The
beginning-of-sequence position has a direction of its own; everything else reads as undefined there.

What is linear in directions that exist already needs none: a *view* (a map of a categorical variable, a
linear form of numbers) is read through a matrix. And where only such maps of a variable are ever read,
they are written in its place: a head that gathers tokens to ask whether they are vowels writes that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from rasplens.compile.analysis.views import is_map_of_class, is_view
from rasplens.compile.ir import (
    UNDEFINED,
    AttentionNode,
    FiniteGraph,
    LinearNode,
    PredicateNode,
    SelectBestNode,
    SelectorNode,
    VariableNode,
)
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.values import exact, value_key
from rasplens.errors import RaspLensError

Columns = Float[np.ndarray, "d_model _"]


@dataclass(frozen=True, eq=False)
class Layout:
    """The places of all variables in the residual stream.

    Attributes:
        graph: The variables themselves.
        d_model: The number of directions.
        written: By id of what a head, neurons or the embedding compute: the variables that are written.
        slices: By id of a written variable, its directions.
        maps: By id of a variable that follows from a written one: that one, and its code for every code
            of that one, undefined last.
        bos: The direction of the beginning-of-sequence position; None if there is no such position.
        one: A direction that is 1 at every position of the sequence; None if others add up to that.
        pad: The direction of padding; None if the model knows none.
    """

    graph: FiniteGraph
    d_model: int
    written: dict[int, tuple[int, ...]]
    slices: dict[int, slice]
    maps: dict[int, tuple[int, np.ndarray]]
    bos: int | None
    one: int | None
    pad: int | None

    def can_read(self, variable: int) -> bool:
        """Whether the residual stream holds a variable, as such or as a view."""
        return variable in self.slices or variable in self.maps or variable in self._linear_forms

    def reading(self, variable: int) -> Columns:
        """Reads a variable in the coordinates of its encoding; zeros where it is undefined, and at the BOS."""
        if variable in self.slices:
            return self._blank(self._axes(self._directions(variable)))
        node = self.graph.variable(variable)
        if variable in self.maps:
            source, codes = self.maps[variable]
            encodings = _encodings(node)[codes]
            columns = self.onehot(source) @ encodings[:-1]
            if encodings[-1].any():
                columns = columns + (self.position() - self.defined(source)) @ encodings[-1:]
            return columns
        if variable not in self._linear_forms:
            raise RaspLensError(f"The residual stream does not hold {node.name!r}.")
        return self._linear_forms[variable].copy()

    @cached_property
    def _linear_forms(self) -> dict[int, Columns]:
        """Reads each linear form that is a view: in the order of the graph, as forms may share forms."""
        found: dict[int, Columns] = {}
        held = self.slices.keys() | self.maps.keys()
        for i in self.graph.variables:
            node = self.graph.variable(i)
            if not isinstance(node, LinearNode) or i in held or i in self.written:
                continue
            if all(source in found or source in held for source in node.inputs):
                fst, snd = (found[j] if j in found else self.number(j) for j in node.inputs)
                found[i] = float(exact(node.fst_fac)) * fst + float(exact(node.snd_fac)) * snd
        return found

    def onehot(self, variable: int) -> Columns:
        """Reads a categorical variable: one column per value."""
        if self.graph.variable(variable).is_numerical:
            raise RaspLensError(
                f"{self.graph.variable(variable).name!r} is a number, and has no column per value."
            )
        return self.reading(variable)

    def number(self, variable: int) -> Columns:
        """Reads a variable as a number, in one column: 0 where it is undefined."""
        node = self.graph.variable(variable)
        if node.is_numerical:
            return self.reading(variable)[:, :1]
        return self.onehot(variable) @ np.array([float(value) for value in node.values])[:, None]

    def defined(self, variable: int) -> Columns:
        """Reads whether a variable is defined, in one column: 1 or 0."""
        node = self.graph.variable(variable)
        if not node.is_partial:
            return self.position()
        reading = self.reading(variable)
        return reading[:, 1:] if node.is_numerical else reading.sum(axis=1, keepdims=True)

    def truth(self, variable: int, wanted: bool) -> Columns:
        """Reads whether a categorical variable is true (or false, if that is wanted), in one column: 1 or 0."""
        holds = [bool(value) is wanted for value in self.graph.variable(variable).values]
        return self.onehot(variable) @ np.array(holds, dtype=float)[:, None]

    def onehot_or_none(self, variable: int) -> Columns:
        """Reads a categorical variable: one column per value, and a last one for undefined."""
        return np.concatenate([self.onehot(variable), self.position() - self.defined(variable)], axis=1)

    def position(self) -> Columns:
        """Reads 1 at every position of the sequence and 0 at the BOS."""
        if self.one is not None:
            return self._axes([self.one])
        return self.onehot(_always_there(self.graph, self.written)[0]).sum(axis=1, keepdims=True)

    def largest(self) -> Float[np.ndarray, " d_model"]:
        """The most that each direction holds: 1, or of a number the largest."""
        most = np.ones(self.d_model)
        for variable, directions in self.slices.items():
            node = self.graph.variable(variable)
            if node.is_numerical:
                most[directions.start] = max(1.0, *(abs(float(value)) for value in node.values))
        return most

    def is_pad(self) -> Columns:
        """Reads 1 at padding and 0 elsewhere."""
        return self._marker(self.pad)

    def is_bos(self) -> Columns:
        """Reads 1 at the beginning-of-sequence position and 0 elsewhere."""
        return self._marker(self.bos)

    def _marker(self, direction: int | None) -> Columns:
        """The column that reads one direction; zeros if there is none."""
        return np.zeros((self.d_model, 1)) if direction is None else self._axes([direction])

    def write(self, variable: int) -> Float[np.ndarray, "width d_model"]:
        """Writes a vector in the coordinates of `encode` to the directions of what is written."""
        return self._axes([d for part in self.written[variable] for d in self._directions(part)]).T

    def _directions(self, variable: int) -> Sequence[int]:
        """Those of a written variable."""
        return range(self.d_model)[self.slices[variable]]

    def encode(self, variable: int, value: Value) -> Float[np.ndarray, " width"]:
        """The vector that is written for a value of a variable; zeros for None."""
        node = self.graph.variable(variable)
        if self.written[variable] == (variable,):
            return encode(node, value)
        code = UNDEFINED if value is None else node.domain.codes()[value_key(value)]
        return self.encodings(variable)[code]

    def encodings(self, variable: int) -> Float[np.ndarray, "code width"]:
        """The vectors that are written for every code of a categorical variable, zeros for undefined last."""
        return self._written_encodings[variable]

    @cached_property
    def _written_encodings(self) -> dict[int, np.ndarray]:
        derived = _derived(self.graph)
        found = {}
        for variable, parts in self.written.items():
            node = self.graph.variable(variable)
            if parts == (variable,):
                found[variable] = _encodings(node)
            else:
                nothing = np.zeros((len(node.values) + 1, 0))
                encodings = [_encodings(self.graph.variable(i))[derived[i][1]] for i in parts]
                found[variable] = np.concatenate([nothing, *encodings], axis=1)
        return found

    @cached_property
    def bos_content(self) -> Float[np.ndarray, " d_model"]:
        """The content of the variables' directions at the BOS, which attends to itself.

        A head writes there what it gives to others as their fallback.
        """
        content = np.zeros(self.d_model)
        for variable in self.written:
            node = self.graph.variable(variable)
            for fallback in node.fallbacks if isinstance(node, AttentionNode) else ():
                content = content + self.encode(variable, fallback) @ self.write(variable)
        return content

    def _axes(self, directions: Sequence[int]) -> Columns:
        """Columns that read some directions of the residual stream."""
        columns = np.zeros((self.d_model, len(directions)))
        columns[directions, np.arange(len(directions))] = 1
        return columns

    def _blank(self, columns: Columns) -> Columns:
        """Columns that read the same, but zeros at the beginning-of-sequence position."""
        if self.bos is not None:
            columns[self.bos] -= self.bos_content @ columns
        return columns


def lay_out(graph: FiniteGraph, has_bos: bool, fold: bool, has_pad: bool = False) -> Layout:
    """Directions for every variable, in the order of the graph.

    Args:
        graph: The variables.
        has_bos: Whether there is a beginning-of-sequence position.
        has_pad: Whether there is a token for padding.
        fold: Whether what is linear becomes a view; otherwise every variable has directions of its own.
    """
    bases = [i for i in graph.variables if not (fold and is_view(graph, i))]
    derived, read = _derived(graph), _read(graph, bases)
    written = {base: _to_write(graph, base, read, derived) if fold else (base,) for base in bases}
    slices, width = {}, 0
    for parts in written.values():
        for part in parts:
            slices[part] = slice(width, width + n_directions(graph.variable(part)))
            width = slices[part].stop
    one = None if _always_there(graph, written) else width
    width += one is not None
    maps = _maps(graph, written, derived) if fold else {}
    bos = width if has_bos else None
    pad = width + has_bos if has_pad else None
    return Layout(graph, width + has_bos + has_pad, written, slices, maps, bos, one, pad)


def n_directions(node: VariableNode) -> int:
    """How many directions a variable takes."""
    if node.is_numerical:
        return 2 if node.is_partial else 1
    return len(node.values)


def encode(node: VariableNode, value: Value) -> Float[np.ndarray, " width"]:
    """A value in the coordinates of a variable's encoding; zeros for None."""
    vector = np.zeros(n_directions(node))
    if value is None:
        return vector
    if node.is_numerical:
        vector[:] = 1
        vector[0] = float(value)
    else:
        vector[node.domain.codes()[value_key(value)]] = 1
    return vector


def _encodings(node: VariableNode) -> Float[np.ndarray, "code width"]:
    """The encoding of every code, zeros for undefined last."""
    if not node.is_numerical:
        return np.eye(len(node.values) + 1, len(node.values))
    numbers = np.ones((len(node.values) + 1, n_directions(node)))
    numbers[:-1, 0] = [float(value) for value in node.values]
    numbers[-1] = 0
    return numbers


def _identity(node: VariableNode) -> np.ndarray:
    return np.array([*range(len(node.values)), UNDEFINED])


def _derived(graph: FiniteGraph) -> dict[int, tuple[int, np.ndarray]]:
    """By variable: the categorical base that it is a function of, and its code for every code of that."""
    derived: dict[int, tuple[int, np.ndarray]] = {}
    for i in graph.variables:
        node = graph.variable(i)
        if is_map_of_class(node, graph):
            base, codes = derived[node.inputs[0]]
            derived[i] = base, node.table[codes]
        elif not is_view(graph, i):
            derived[i] = i, _identity(node)
    return derived


def _read(graph: FiniteGraph, bases: Iterable[int]) -> set[int]:
    """The variables whose directions heads, neurons or the unembedding read."""
    waiting = [source for base in bases for source in graph.nodes[base].inputs] + [graph.output]
    visited: set[int] = set()
    read: set[int] = set()
    while waiting:
        i = waiting.pop()
        if i in visited:
            continue
        visited.add(i)
        node = graph.nodes[i]
        if isinstance(node, PredicateNode) and not isinstance(node, SelectBestNode):
            waiting += [
                source for source, is_read in zip(node.inputs, sides_read(node, graph), strict=True) if is_read
            ]
        elif isinstance(node, SelectorNode) or (isinstance(node, LinearNode) and is_view(graph, i)):
            waiting += node.inputs
        else:
            read.add(i)
    return read


def sides_read(node: PredicateNode, graph: FiniteGraph) -> tuple[bool, bool]:
    """Whether a predicate depends on its key, and on its query, rather than on the other alone."""
    keys, queries = (graph.variable(i) for i in node.inputs[:2])
    table = node.table[: len(keys.values) + keys.is_partial, : len(queries.values) + queries.is_partial]
    depends_on_query = bool((table != table[:, :1]).any())
    return bool((table != table[:1]).any()) or not depends_on_query, depends_on_query


def _to_write(
    graph: FiniteGraph, base: int, read: set[int], derived: dict[int, tuple[int, np.ndarray]]
) -> tuple[int, ...]:
    """The variables to write for a base: itself, or if they are no wider together, all that are read of it."""
    node = graph.variable(base)
    wanted = [i for i in derived if derived[i][0] == base and i in read]
    if node.is_numerical or base in wanted:
        return (base,)
    wanted.sort(key=lambda i: (graph.variable(i).is_numerical, -n_directions(graph.variable(i)), i))
    chosen: list[int] = []
    for i in wanted:
        if not any(_function_of(graph, derived, i, source) is not None for source in chosen):
            chosen.append(i)
    is_zero_where_undefined = not node.is_partial or all(derived[i][1][-1] == UNDEFINED for i in chosen)
    width = sum(n_directions(graph.variable(i)) for i in chosen)
    return tuple(sorted(chosen)) if is_zero_where_undefined and width <= n_directions(node) else (base,)


def _maps(
    graph: FiniteGraph, written: dict[int, tuple[int, ...]], derived: dict[int, tuple[int, np.ndarray]]
) -> dict[int, tuple[int, np.ndarray]]:
    """For every variable that is not written but follows from one that is: how."""
    maps = {}
    for i, (base, _) in derived.items():
        if i in written[base]:
            continue
        for source in written[base]:
            codes = _function_of(graph, derived, i, source)
            if codes is not None:
                maps[i] = source, codes
                break
    return maps


def _function_of(
    graph: FiniteGraph, derived: dict[int, tuple[int, np.ndarray]], variable: int, source: int
) -> np.ndarray | None:
    """The variable's code for every code of a categorical source, if the source determines it."""
    if graph.variable(source).is_numerical:
        return None
    (base, targets), (_, given) = derived[variable], derived[source]
    occurring = slice(None) if graph.variable(base).is_partial else slice(-1)
    codes = np.full(len(graph.variable(source).values) + 1, UNDEFINED)
    codes[given[occurring]] = targets[occurring]
    return codes if (codes[given[occurring]] == targets[occurring]).all() else None


def _always_there(graph: FiniteGraph, written: dict[int, tuple[int, ...]]) -> list[int]:
    """Embedded variables of which every position of the sequence, and not the BOS, holds one value."""
    embedded = [part for base, parts in written.items() if not graph.variable(base).inputs for part in parts]
    return [i for i in embedded if not graph.variable(i).is_partial and not graph.variable(i).is_numerical]
