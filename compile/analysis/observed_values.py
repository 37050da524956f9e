"""Which values meet on inputs that are run, operation by operation: all that occurs, and nothing else."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compile.analysis.domains import ValuesError
from rasplens.compile.analysis.possible_codes import Possible
from rasplens.compile.analysis.table_evaluation import Trace, trace_node
from rasplens.compile.ir import UNDEFINED, FiniteNode, GraphNode, LoweredVariable, variable_at
from rasplens.compile.limits import CompileLimits
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.values import exact

CELL = 8
"""Bytes of a cell of a table."""

LARGEST_SUM = 2**62
"""Sums of whole numbers up to this one are computed in int64, larger ones with Python's integers."""


Selected = Bool[np.ndarray, "batch query key"]
Codes = Int[np.ndarray, "batch query key"]


@dataclass(frozen=True, eq=False)
class ObservedValues:
    """The values that occur in a graph on the inputs of a small space.

    What an operation is where it has no value, and whatever reads that, is left out.

    Attributes:
        limits: How large tables may be.
        nodes: The graph so far.
        traces: What happens in it, a batch of sequences of one length each.
    """

    limits: CompileLimits
    nodes: list[FiniteNode]
    traces: list[Trace] = field(default_factory=list)

    @classmethod
    def of(cls, space: InputSpace, limits: CompileLimits, nodes: list[FiniteNode]) -> "ObservedValues":
        """Return the values that occur on all inputs of a space."""
        traces = [Trace(ids, space.visible[: ids.shape[1], : ids.shape[1]]) for ids in space.all_ids()]
        return cls(limits, nodes, traces)

    def add(self, i: int) -> None:
        """Runs a further node."""
        for found in self.traces:
            trace_node(i, self.nodes, found)

    def together(self, node: LoweredVariable) -> Bool[np.ndarray, "..."]:
        """Which codes of a node's inputs come together at a position, undefined last on every axis."""
        met = self._table(node, node.inputs)
        for found in self.traces:
            is_known = found.is_known(*node.inputs)
            met[tuple(found.codes[i][is_known] for i in node.inputs)] = True
        return met

    def chosen(self, node: LoweredVariable, truth: Possible) -> tuple[Possible, Possible]:
        """Which codes of its branches a choice takes, undefined last.

        Args:
            node: The choice.
            truth: By code of the condition, whether it holds.
        """
        condition, *branches = node.inputs
        is_defined = np.arange(len(truth)) < len(truth) - 1
        taken = [np.zeros(len(variable_at(self.nodes, i).values) + 1, dtype=bool) for i in branches]
        for found in self.traces:
            is_known = found.is_known(*node.inputs)
            for branch, codes, wanted in zip(branches, taken, (truth, ~truth & is_defined), strict=True):
                codes[found.codes[branch][is_known & wanted[found.codes[condition]]]] = True
        return taken[0], taken[1]

    def key_and_query(self, node: GraphNode) -> Bool[np.ndarray, "key query"]:
        """Which codes of a key and of a query come together in a sequence, undefined last."""
        met = self._table(node, node.inputs[:2])
        for found in self.traces:
            keys, queries = (found.codes[i] for i in node.inputs[:2])
            of_keys, of_queries = (found.is_known(i) for i in node.inputs[:2])
            every = np.broadcast_arrays(keys[:, None, :], queries[:, :, None])
            are_known = of_keys[:, None, :] & of_queries[:, :, None]
            met[tuple(one[are_known] for one in every)] = True
        return met

    def selected(self, selector: int, source: int) -> Possible:
        """Which codes of a variable a selector selects, undefined last."""
        picked = np.zeros(len(variable_at(self.nodes, source).values) + 1, dtype=bool)
        for selected, codes in self._rows(selector, source):
            picked[codes[selected]] = True
        return picked

    def selected_alone(self, selector: int, source: int) -> Possible:
        """Which codes of a variable are all that a selector selects for some query, undefined last."""
        size = len(variable_at(self.nodes, source).values) + 1
        alone = np.zeros(size, dtype=bool)
        for selected, codes in self._rows(selector, source):
            places = codes % size
            highest = np.where(selected, places, -1).max(axis=-1)
            lowest = np.where(selected, places, size).min(axis=-1)
            alone[highest[highest == lowest]] = True
        return alone

    def means(self, node: LoweredVariable, numbers: Sequence[Value | None]) -> set[Fraction]:
        """Every mean of numbers that an aggregate takes.

        Args:
            node: The aggregate.
            numbers: By code of what it averages, the number; None of what is never selected.
        """
        rationals = [Fraction(0) if number is None else exact(number) for number in numbers]
        unit = math.lcm(*(number.denominator for number in rationals))
        wholes = [int(number * unit) for number in rationals]
        most = max(map(abs, wholes), default=0)
        longest = max((found.ids.shape[1] for found in self.traces), default=1)
        terms = np.array([*wholes, 0], dtype=np.int64 if most * longest < LARGEST_SUM else object)
        means: set[Fraction] = set()
        for selected, codes in self._rows(*node.inputs):
            is_defined = selected & (codes != UNDEFINED)
            counts = is_defined.sum(axis=-1)
            rows = (counts > 0) & (counts == selected.sum(axis=-1))
            totals = np.where(is_defined, terms[codes], 0).sum(axis=-1)
            sums = set(zip(totals[rows].tolist(), counts[rows].tolist(), strict=True))
            means.update(Fraction(total, count * unit) for total, count in sums)
        return means

    def widths(self, selector: int, may_be_empty: bool) -> Sequence[int]:
        """How many keys a selector selects."""
        counts = [
            np.unique(found.selected[selector].sum(axis=-1)[found.is_known(selector)]) for found in self.traces
        ]
        return np.unique(np.concatenate(counts)).tolist() or [0]

    def may_be_empty(self, selector: int) -> bool:
        """Whether a selector selects nothing where a position sees something."""
        for found in self.traces:
            is_asked = found.visible.any(axis=1) & found.is_known(selector)
            if (is_asked & ~found.selected[selector].any(axis=-1)).any():
                return True
        return False

    def _rows(
        self, selector: int, source: int
    ) -> Iterator[tuple[Bool[np.ndarray, "batch query key"], Int[np.ndarray, "batch query key"]]]:
        """Yield selected keys and the codes at each key, as arrays of one shape; nothing of what fails."""
        for found in self.traces:
            selected = found.selected[selector]
            is_unknown = ~found.is_known(selector) | (selected & ~found.is_known(source)[:, None, :]).any(axis=-1)
            selected = selected & ~is_unknown[:, :, None]
            yield selected, np.broadcast_to(found.codes[source][:, None, :], selected.shape)

    def _table(self, node: GraphNode, inputs: Iterable[int]) -> np.ndarray:
        """A table over the codes of some variables, nothing in it yet.

        Raises:
            ValuesError: If it would take too much memory.
        """
        sizes = [len(variable_at(self.nodes, i).values) + 1 for i in inputs]
        if CELL * math.prod(sizes) > self.limits.max_bytes:
            counts = " and ".join(f"{size - 1:,}" for size in sizes)
            raise ValuesError(
                f"{node.name!r} combines variables of {counts} values: their table is larger than "
                f"{self.limits.max_bytes:,} bytes. Reduce the vocabulary or max_len, round the values, or raise "
                "max_bytes of CompileLimits.",
                node.expr,
            )
        return np.zeros(sizes, dtype=bool)
