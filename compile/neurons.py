"""From an elementwise operation to ReLU neurons.

Nothing here has a bias: what would be one reads `layout.position()`, the sum of the token directions,
which is 1 at every position of the sequence and 0 at the BOS, so that no neuron ever fires at the BOS.
Source: Lindner et al. 2023, appendix D.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from jaxtyping import Float

from rasplens.compile import graph as ops
from rasplens.compile.graph import Node
from rasplens.compile.rasp import Encoding
from rasplens.compile.residual import Columns, Layout

RAMP = 4.0
"""Slope of a step, in units of the gap that it stands in.

A step between two neighbouring numbers rises over the middle quarter of the gap (1 / RAMP of it), so a
number may be off by 3/8 of the gap and still read exactly.
"""

Rows = Float[np.ndarray, "_ width"]
"""What each neuron writes, in the coordinates of the variable that it belongs to."""


@dataclass(frozen=True, eq=False)
class Neurons:
    """The weights of some neurons."""

    W_in: Columns
    W_out: Float[np.ndarray, "_ d_model"]


def build_neurons(variable: int, layout: Layout) -> Neurons:
    """The neurons that compute an `Apply`, `Linear` or `Choose`."""
    node = layout.finite.graph.nodes[variable]
    columns, rows = _build(node.op, node, variable, layout)
    used = rows.any(axis=1)
    return Neurons(columns[:, used], rows[used] @ layout.write(variable))


@singledispatch
def _build(op: object, node: Node, variable: int, layout: Layout) -> tuple[Columns, Rows]:
    raise AssertionError(f"no neurons compute {op}")


@_build.register
def _(op: ops.Apply, node: Node, variable: int, layout: Layout) -> tuple[Columns, Rows]:
    results = _results(variable, layout)
    if len(node.inputs) == 2:
        return _pairs(node.inputs, results, layout)
    (source,) = node.inputs
    if layout.finite.graph.nodes[source].encoding is Encoding.NUMERICAL:
        return _steps(source, results, layout)
    return layout.onehot(source), results


@_build.register
def _(op: ops.Linear, node: Node, variable: int, layout: Layout) -> tuple[Columns, Rows]:
    fst, snd = node.inputs
    total = op.fst_fac * layout.number(fst) + op.snd_fac * layout.number(snd)
    most = abs(op.fst_fac) * _largest(fst, layout) + abs(op.snd_fac) * _largest(snd, layout)
    gates = [layout.defined(source) for source in (fst, snd) if layout.finite.domains[source].is_partial]
    return _gated_number(total, most, gates, variable, layout)


@_build.register
def _(op: ops.Choose, node: Node, variable: int, layout: Layout) -> tuple[Columns, Rows]:
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
    if layout.finite.graph.nodes[branch].encoding is Encoding.NUMERICAL:
        gates = [gate, layout.defined(branch)] if layout.finite.domains[branch].is_partial else [gate]
        return _gated_number(layout.number(branch), _largest(branch, layout), gates, variable, layout)
    columns = layout.onehot(branch) + gate - layout.position()
    values = layout.finite.domains[branch].values
    # A branch that is never taken may hold values that the result does not know.
    is_taken = gate.any()
    rows = [layout.encode(variable, value if is_taken else None) for value in values]
    return columns, np.stack(rows)


def _pairs(sources: Sequence[int], results: np.ndarray, layout: Layout) -> tuple[Columns, Rows]:
    """One neuron per pair of values: relu(x + y - 1) is 1 where both are present, else 0."""
    fst, snd = (layout.onehot(source) for source in sources)
    both = fst[:, :, None] + snd[:, None, :] - layout.position()[:, :, None]
    return both.reshape(layout.d_model, -1), results.reshape(-1, results.shape[-1])


def _steps(source: int, results: Rows, layout: Layout) -> tuple[Columns, Rows]:
    """Steps between the numbers at which the result changes.

    A step up at t is relu(a) - relu(a - 1) with a = (x - t) · RAMP / gap + 1/2: exactly 0 below the
    middle of the gap and exactly 1 above, with a ramp between. Where x is undefined it reads 0, and so
    does the indicator that stands in for the bias. Each step runs towards the nearer end of the domain,
    because its two neurons grow beyond the step, and the rounding error of their difference with them.
    """
    numbers = np.array([float(value) for value in layout.finite.domains[source].values])
    number, defined = layout.number(source), layout.defined(source)
    base = results[0].copy()
    columns, rows = [], []
    for below in np.flatnonzero((results[1:] != results[:-1]).any(axis=1)):
        change = results[below + 1] - results[below]
        middle = (numbers[below] + numbers[below + 1]) / 2
        slope = RAMP / (numbers[below + 1] - numbers[below])
        if numbers[-1] - middle > middle - numbers[0]:
            base, change, slope = base + change, -change, -slope
        ramp = slope * number + (0.5 - slope * middle) * defined
        columns += [ramp, ramp - defined]
        rows += [change, -change]
    return np.concatenate([*columns, defined], axis=1), np.stack([*rows, base])


def _gated_number(
    number: Columns, most: float, gates: Sequence[Columns], variable: int, layout: Layout
) -> tuple[Columns, Rows]:
    """relu(x) - relu(-x), both shut by -M where a gate is 0, with M the most that |x| can be.

    A third neuron says that the result is defined, where that can fail: relu(sum of gates - (n - 1)).
    """
    shut = sum(gates, np.zeros_like(number)) - len(gates) * layout.position()
    columns = np.concatenate([number + most * shut, -number + most * shut, shut + layout.position()], axis=1)
    is_partial = layout.finite.domains[variable].is_partial
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    return columns, rows if is_partial else rows[:, :1]


def _results(variable: int, layout: Layout) -> np.ndarray:
    """The encoded result for every code of the inputs: `[code, …, width]`."""
    finite = layout.finite
    vectors = [layout.encode(variable, value) for value in (*finite.domains[variable].values, None)]
    table = finite.tables[variable]
    defined_inputs = table[tuple(slice(size - 1) for size in table.shape)]
    return np.stack(vectors)[defined_inputs]


def _largest(variable: int, layout: Layout) -> float:
    return max(abs(float(value)) for value in layout.finite.domains[variable].values)
