"""The programs that were found for a model, and those that were refuted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rasplens.compare.verdict.verdict import IMPLEMENTS, PARTLY, UNKNOWN, Verdict
from rasplens.compile import CompiledModel


@dataclass(frozen=True, eq=False)
class ExplainedBy:
    """A program that was judged.

    Attributes:
        source: The program as Python that runs; `program` is its result.
        compiled: The program, compiled for the task.
        n_nodes: How many expressions it has.
        agreement: The share of the model's answers that it has, on inputs that it was not read off.
        table: That of a decision tree on tokens and positions with as many leaves.
        searching: The verdict on training inputs, at `quick`.
        verdict: That on held-out inputs; None where the first one refuted the program.
    """

    source: str
    compiled: CompiledModel
    n_nodes: int
    agreement: float
    table: float
    searching: Verdict
    verdict: Verdict | None

    @property
    def answer(self) -> str:
        """The answer of the last verdict."""
        return (self.verdict or self.searching).answer

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        said = self.verdict or self.searching
        return {
            "source": self.source,
            "answer": said.answer,
            "levels": dict(said.levels),
            "reasons": list(said.reasons),
            "judged_on": "training inputs" if self.verdict is None else "held-out inputs",
            "n_nodes": self.n_nodes,
            "agreement": self.agreement,
            "table": self.table,
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """The programs that were found for a model, and those that were tried; false if none was found.

    Attributes:
        task: The name of the task.
        tried: The programs that were judged, in this order.
        seconds: How long it took.
        ended: Why no further program was judged.
    """

    task: str
    tried: tuple[ExplainedBy, ...]
    seconds: float
    ended: str

    def __bool__(self) -> bool:
        return bool(self.programs)

    @property
    def programs(self) -> tuple[ExplainedBy, ...]:
        """Those that the model is said to implement, on held-out inputs."""
        return tuple(one for one in self.tried if one.answer == IMPLEMENTS)

    @property
    def nearest(self) -> ExplainedBy | None:
        """The program that was found, or of those that were judged the one that most is said for; None of none."""
        return max(self.tried, key=_nearness, default=None)

    @property
    def not_told_apart(self) -> tuple[ExplainedBy, ...]:
        """Others that no claim speaks against."""
        said = [one for one in self.tried if one.answer == UNKNOWN]
        return (*self.programs[1:], *said)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return {
            "task": self.task,
            "programs": [one.to_dict() for one in self.programs],
            "tried": [one.to_dict() for one in self.tried],
            "seconds": self.seconds,
            "ended": self.ended,
        }

    def to_json(self) -> str:
        """The fields as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def __str__(self) -> str:
        return "\n".join(lines(self))


def lines(found: Explanation) -> Sequence[str]:
    """An explanation in words: the program and what is said of it, or the one that came nearest."""
    n_tried = len(found.tried)
    judged = "1 program was" if n_tried == 1 else f"{n_tried} programs were"
    tried = f"{judged} judged in {found.seconds:.0f} s: {found.ended}."
    best = found.nearest
    if best is None:
        return [f"No program was found. {tried}"]
    head = "The model implements this program" if found else "No program was found. This one comes nearest"
    said = best.verdict or best.searching
    return [
        f"{head}:",
        "",
        best.source,
        f"Verdict: {said.answer}. {' '.join(said.reasons[:1])}".strip(),
        f"It has {best.agreement:.1%} of the model's answers with {best.n_nodes} expressions. A decision tree "
        f"with as many leaves has {best.table:.1%}.",
        *([f"Others that no claim speaks against: {n}."] if (n := len(found.not_told_apart)) else []),
        tried,
    ]


def _nearness(one: ExplainedBy) -> tuple[int, float]:
    order: Mapping[str, int] = {IMPLEMENTS: 3, UNKNOWN: 2, PARTLY: 1}
    return order.get(one.answer, 0), one.agreement
