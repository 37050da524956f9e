"""Which attention edges a program reads on each input, by what it does with them: gather values, or count."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from rasplens.compile import rasp
from rasplens.compile.rasp import SOp
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter
from rasplens.compile.rasp.interpreter import expressions
from rasplens.tasks import Task
from rasplens.tasks.task import Ids

Edges = Bool[np.ndarray, "input query key"]

Aggregates = tuple[str, ...]
"""The names of the aggregates that share a selector."""


@dataclass(frozen=True, eq=False)
class ProgramEdges:
    """The attention edges that a program reads on some inputs, between positions of the task.

    Attributes:
        gathered: By the aggregates that share a selector, the edges along which they gather values.
        counted: The edges that a selector width counts.
        defined: On which inputs the program selects anything at all: it has a value there.
    """

    gathered: dict[Aggregates, Edges]
    counted: Edges
    defined: Bool[np.ndarray, " input"]

    def of(self, rows: np.ndarray) -> "ProgramEdges":
        """Those on some of the inputs."""
        gathered = {aggregates: edges[rows] for aggregates, edges in self.gathered.items()}
        return ProgramEdges(gathered, self.counted[rows], self.defined[rows])

    @property
    def carrying(self) -> Edges:
        """The edges along which some aggregate gathers values."""
        return np.logical_or.reduce([np.zeros_like(self.counted), *self.gathered.values()])


def between_positions(task: Task) -> Bool[np.ndarray, "query key"]:
    """The edges of a task from one position to another; a position's own edge repeats its residual stream."""
    return task.visible & ~np.eye(task.n_ctx, dtype=bool)


def program_edges(program: SOp, task: Task, ids: Ids) -> ProgramEdges:
    """The edges that a program's selectors select on some inputs, by the interpreter."""
    groups = gathering(program)
    shape = len(ids), task.n_ctx, task.n_ctx
    gathered = {name: np.zeros(shape, dtype=bool) for name in groups.values()}
    counted = np.zeros(shape, dtype=bool)
    found, fails = BatchInterpreter(program, task.vocab, task.visible).selections(ids)
    for expr, selected in found:
        edges = counted if isinstance(expr, rasp.SelectorWidth) else gathered[groups[id(expr.selector)]]
        edges[~fails] |= selected[~fails]
    return ProgramEdges(gathered, counted, ~fails)


def gathering(program: SOp) -> dict[int, Aggregates]:
    """By the id of each selector that aggregates read, these aggregates."""
    names: dict[int, list[str]] = {}
    for expr in expressions(program):
        if isinstance(expr, rasp.Aggregate):
            names.setdefault(id(expr.selector), []).append(expr.name)
    return {selector: tuple(dict.fromkeys(own)) for selector, own in names.items()}
