"""From an elementwise operation to ReLU neurons.

Nothing here has a bias: what would be one reads `layout.position()`, the sum of the token directions,
which is 1 at every position of the sequence and 0 at the BOS, so that no neuron ever fires at the BOS.
Source: Lindner et al. 2023, appendix D.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Protocol

import numpy as np
from jaxtyping import Float

from rasplens.compile.analysis.table_evaluation import recode
from rasplens.compile.backend.residual_layout import Columns, Layout
from rasplens.compile.ir import UNDEFINED, LinearNode, LookupNode, VariableNode, WhereNode
from rasplens.compile.rasp.values import exact

RAMP = 4.0
"""Slope of a step, in units of the gap that it stands in.

A step between two neighbouring numbers rises over the middle quarter of the gap (1 / RAMP of it), so a
number may be off by 3/8 of the gap and still read exactly.
"""

Rows = Float[np.ndarray, "_ width"]
"""One row per neuron: its output, in the coordinates of the variable that it belongs to."""


@dataclass(frozen=True, eq=False)
class Neurons:
    """The weights of some neurons."""

    W_in: Columns
    W_out: Float[np.ndarray, "_ d_model"]


def build_neurons(variable: int, layout: Layout) -> Neurons:
    """The neurons that compute a `LookupNode`, `LinearNode` or `WhereNode`."""
    columns, rows = _build(layout.graph.variable(variable), variable, layout)
    used = rows.any(axis=1)
    if not used.all():
        columns, rows = columns[:, used], rows[used]
    if layout.pad is not None:  # at padding the position's own embedding must not set anything off
        columns[layout.pad] = -np.abs(columns).T @ layout.largest()
    return Neurons(columns, rows @ layout.write(variable))


def n_neurons(variable: int, layout: Layout) -> int:
    """The most neurons that a variable takes, known before they are made; of a function of two, how many."""
    node = layout.graph.variable(variable)
    sources = [layout.graph.variable(source) for source in node.inputs]
    if isinstance(node, LookupNode) and len(sources) == 2:
        written = layout.encodings(variable)
        return min(form.n_neurons(written) for form in _forms(node, layout))
    if node.is_numerical and not isinstance(node, LookupNode):
        return 3 * len(sources)
    return 2 * sum(len(source.values) + 1 for source in sources)


@singledispatch
def _build(node: VariableNode, variable: int, layout: Layout) -> tuple[Columns, Rows]:
    raise AssertionError(f"no neurons compute {node}")


@_build.register
def _(node: LookupNode, variable: int, layout: Layout) -> tuple[Columns, Rows]:
    if len(node.inputs) == 2:
        return _pairs(node, variable, layout)
    (source,) = node.inputs
    if layout.graph.variable(source).is_numerical:
        return _steps(source, _results(node, variable, layout)[:-1], layout)
    return layout.onehot_or_none(source), _results(node, variable, layout)


@_build.register
def _(node: LinearNode, variable: int, layout: Layout) -> tuple[Columns, Rows]:
    factors = [float(exact(factor)) for factor in (node.fst_fac, node.snd_fac)]
    terms = [factor * layout.number(source) for factor, source in zip(factors, node.inputs, strict=True)]
    most = sum(abs(f) * _largest(layout.graph.variable(i)) for f, i in zip(factors, node.inputs, strict=True))
    gates = [layout.defined(source) for source in node.inputs if layout.graph.variable(source).is_partial]
    return _gated_number(terms[0] + terms[1], most, gates, node, layout)


@_build.register
def _(node: WhereNode, variable: int, layout: Layout) -> tuple[Columns, Rows]:
    condition, *branches = node.inputs
    columns, rows = [], []
    for branch, wanted in zip(branches, (True, False), strict=True):
        gate = layout.truth(condition, wanted)
        branch_columns, branch_rows = _branch(branch, gate, variable, layout)
        columns.append(branch_columns)
        rows.append(branch_rows)
    return np.concatenate(columns, axis=1), np.concatenate(rows)


def _branch(branch: int, gate: Columns, variable: int, layout: Layout) -> tuple[Columns, Rows]:
    """Neurons that hand a variable on where the gate is 1, and are silent where it is 0."""
    source, node = layout.graph.variable(branch), layout.graph.variable(variable)
    if node.is_numerical:
        gates = [gate, layout.defined(branch)] if source.is_partial else [gate]
        return _gated_number(layout.number(branch), _largest(source), gates, node, layout)
    columns = layout.onehot(branch) + gate - layout.position()
    # A branch may hold values that the result does not know, since it is never taken with those.
    return columns, layout.encodings(variable)[recode(source, node)[:-1]]


def _pairs(node: LookupNode, variable: int, layout: Layout) -> tuple[Columns, Rows]:
    """A function of two variables, one value per pair, in the cheapest of three forms."""
    written = layout.encodings(variable)
    form = min(_forms(node, layout), key=lambda form: form.n_neurons(written))
    reads = [layout.onehot_or_none(source) for source in node.inputs]
    return form.build(reads[:: form.order], written, layout)


def _forms(node: LookupNode, layout: Layout) -> list["_Form"]:
    """Plainly; and by either variable, if the other one is always there."""
    first, second = (layout.graph.variable(source) for source in node.inputs)
    forms: list[_Form] = [_Plainly(np.where(node.met, node.table, UNDEFINED))]
    if not second.is_partial:
        forms.append(_WithExceptions(node.table, node.met))
    if not first.is_partial:
        forms.append(_WithExceptions(node.table.T, node.met.T, order=-1))
    return forms


class _Form(Protocol):
    """A way to compute a function of two variables."""

    @property
    def order(self) -> int:
        """1, or -1 if the second variable comes first."""

    def n_neurons(self, written: Rows) -> int:
        """How many neurons it takes, with the rows that are written by code."""

    def build(self, reads: Sequence[Columns], written: Rows, layout: Layout) -> tuple[Columns, Rows]:
        """Columns that read each value of both variables to what neurons read, and their output."""


@dataclass(frozen=True, eq=False)
class _Plainly:
    """One neuron per pair: relu(x + y - 1) is 1 where both are present, else 0.

    Values that give the same results throughout are one.
    """

    codes: np.ndarray
    order: int = 1

    def n_neurons(self, written: Rows) -> int:
        kinds = np.unique(np.unique(self.codes, axis=0), axis=1)
        return int(np.asarray(written.any(axis=1))[kinds[kinds != UNDEFINED]].sum())

    def build(self, reads: Sequence[Columns], written: Rows, layout: Layout) -> tuple[Columns, Rows]:
        fst, codes = _alike(reads[0], self.codes)
        snd, codes = _alike(reads[1], codes.T)
        at = np.nonzero(codes.T != UNDEFINED)
        return _both(fst, snd, at, layout), written[codes.T[at]]


@dataclass(frozen=True, eq=False)
class _WithExceptions:
    """One neuron per value of the first variable, which writes its commonest result; one per exception to that."""

    codes: np.ndarray
    met: np.ndarray
    order: int = 1

    @cached_property
    def common(self) -> np.ndarray:
        """The commonest result by value of the first variable."""
        return np.array([_commonest(row[is_met]) for row, is_met in zip(self.codes, self.met, strict=True)])

    @cached_property
    def exceptions(self) -> tuple[np.ndarray, ...]:
        """Where the result is another one."""
        return np.nonzero(self.met & (self.codes != self.common[:, None]))

    def n_neurons(self, written: Rows) -> int:
        _, row = np.unique(written, axis=0, return_inverse=True)
        row = row.ravel()
        differ = row[self.codes[self.exceptions]] != row[self.common[self.exceptions[0]]]
        return int(np.asarray(written.any(axis=1))[np.unique(self.common)].sum()) + int(differ.sum())

    def build(self, reads: Sequence[Columns], written: Rows, layout: Layout) -> tuple[Columns, Rows]:
        at, (fst, snd) = self.exceptions, reads
        columns = _both(fst, snd, at, layout)
        rows = written[self.codes[at]] - written[self.common[at[0]]]
        fst, common = _alike(fst, self.common[:, None])
        return np.concatenate([fst, columns], axis=1), np.concatenate([written[common[:, 0]], rows])


def _both(fst: Columns, snd: Columns, at: tuple[np.ndarray, ...], layout: Layout) -> Columns:
    """Columns that read 1 where both values of a pair are present, and at most 0 elsewhere."""
    return fst[:, at[0]] + snd[:, at[1]] - layout.position()


def _alike(columns: Columns, codes: np.ndarray) -> tuple[Columns, np.ndarray]:
    """The columns and codes with values that have the same results throughout merged into one."""
    _, first, kind = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    merged = np.zeros((len(columns), len(first)))
    np.add.at(merged.T, kind.ravel(), columns.T)
    return merged, codes[first]


def _commonest(codes: np.ndarray) -> int:
    return int(np.bincount(codes + 1).argmax()) - 1 if len(codes) else UNDEFINED


def _steps(source: int, results: Rows, layout: Layout) -> tuple[Columns, Rows]:
    """Steps between the numbers at which the result changes.

    A step up at t is relu(a) - relu(a - 1) with a = (x - t) · RAMP / gap + 1/2: exactly 0 below the
    middle of the gap and exactly 1 above, with a ramp between. Where x is undefined it reads 0, and so
    does the indicator that stands in for the bias. Each step runs towards the nearer end of the domain,
    because its two neurons grow beyond the step, and the rounding error of their difference with them.
    """
    numbers = np.array([float(value) for value in layout.graph.variable(source).values])
    number, defined = layout.number(source), layout.defined(source)
    base = results[0].copy()
    slopes, offsets, rows = [], [], []
    for below in np.flatnonzero((results[1:] != results[:-1]).any(axis=1)):
        change = results[below + 1] - results[below]
        middle = (numbers[below] + numbers[below + 1]) / 2
        slope = RAMP / (numbers[below + 1] - numbers[below])
        if numbers[-1] - middle > middle - numbers[0]:
            base, change, slope = base + change, -change, -slope
        slopes.append(slope)
        offsets.append(0.5 - slope * middle)
        rows += [change, -change]
    columns = np.empty((layout.d_model, len(rows) + 1))
    columns[:, :-1:2] = np.array(slopes) * number + np.array(offsets) * defined
    columns[:, 1::2] = columns[:, :-1:2] - defined
    columns[:, -1:] = defined
    return columns, np.stack([*rows, base])


def _gated_number(
    number: Columns, most: float, gates: Sequence[Columns], node: VariableNode, layout: Layout
) -> tuple[Columns, Rows]:
    """relu(x) - relu(-x), both shut by -M where a gate is 0, with M the most that |x| can be.

    A third neuron says that the result is defined, where that can fail: relu(sum of gates - (n - 1)).
    """
    shut = sum(gates, np.zeros_like(number)) - len(gates) * layout.position()
    columns = np.concatenate([number + most * shut, -number + most * shut, shut + layout.position()], axis=1)
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    return columns, rows if node.is_partial else rows[:, :1]


def _results(node: LookupNode, variable: int, layout: Layout) -> np.ndarray:
    """The rows to write for every code of the inputs, undefined last: `[code, …, width]`."""
    return layout.encodings(variable)[node.table]


def _largest(node: VariableNode) -> float:
    return max(abs(float(value)) for value in node.values)
