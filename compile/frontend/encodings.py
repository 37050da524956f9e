"""Encodings of s-ops that differ from their annotations, decided step by step from what was found.

An aggregate of classes that are numbers may turn out to average them: then it is compiled as a mean. A number
whose values float32 cannot hold apart has one direction a value instead, where nothing averages it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rasplens.compile import rasp
from rasplens.compile.analysis.domains import Averaged
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.interpreter import expressions
from rasplens.compile.rasp.values import value_key

_HELD_APART = (
    rasp.TokensType,
    rasp.IndicesType,
    rasp.Full,
    rasp.ConstantSOp,
    rasp.Map,
    rasp.SequenceMap,
    rasp.LinearSequenceMap,
    rasp.Where,
    rasp.Aggregate,
)
"""The s-ops whose numbers can have one direction per value instead of one for all."""


@dataclass(frozen=True)
class Encodings:
    """How s-ops are held, by their ids.

    Attributes:
        averages: The aggregates of classes that average numbers.
        made_of: What numbers are made of: those aggregates, and s-ops that read what can be something
            else as well.
        apart: The numbers that have one direction a value.
        is_run: Whether values are those that occur when every input is run, not all that tables allow.
        program: The ids of all expressions of the program.
        numbers: Those of s-ops that can have one direction a value where they are numbers.
    """

    averages: Mapping[int, rasp.Aggregate] = field(default_factory=dict)
    made_of: Mapping[int, Averaged] = field(default_factory=dict)
    apart: frozenset[int] = frozenset()
    is_run: bool = False
    program: frozenset[int] = frozenset()
    numbers: frozenset[int] = frozenset()

    def with_inputs_run(self) -> "Encodings":
        """Return the encodings by the values that occur: what no input reaches is no reason to refuse."""
        return replace(self, is_run=True)

    def with_number(self, expr: rasp.RASPExpr, averaged: Averaged) -> "Encodings":
        """Return the encodings with one more s-op held as a number, and the values that it is made of."""
        return replace(self, made_of={**self.made_of, id(expr): averaged})

    def held_apart(self, expr: rasp.RASPExpr | None) -> "Encodings":
        """Return the encodings with a number that is held with one direction a value."""
        return replace(self, apart=self.apart | {id(expr)})

    def with_average(self, expr: rasp.Aggregate) -> "Encodings":
        """Return the encodings with an aggregate of classes that averages numbers."""
        return replace(self, averages={**self.averages, id(expr): expr})

    def made_of_also(self, found: Sequence[Averaged]) -> "Encodings":
        """Return the encodings with the values now found for each of `averages`; no other number is known yet."""
        known = {i: _joined(self.made_of.get(i), now) for i, now in zip(self.averages, found, strict=True)}
        return replace(self, made_of=known)

    def can_be_held_apart(self, expr: rasp.RASPExpr | None) -> bool:
        """Whether it is a number that can be held with one direction a value, and is not."""
        return id(expr) in self.numbers - self.apart - self.made_of.keys()


AS_WRITTEN = Encodings()
"""Every s-op in the encoding of its annotation."""


def encodings_of(program: rasp.SOp) -> Encodings:
    """The encodings of a program to begin with: every s-op as it says."""
    own = expressions(program)
    numbers = frozenset(id(one) for one in own if isinstance(one, _HELD_APART))
    return Encodings(program=frozenset(map(id, own)), numbers=numbers)


def _joined(before: Averaged | None, now: Averaged) -> Averaged:
    """Return the values that a number is made of, as found before and now."""
    if before is None:
        return now
    return Averaged(_union(before.values, now.values), _union(before.read, now.read))


def _union(first: Sequence[Value], second: Sequence[Value]) -> tuple[Value, ...]:
    return tuple({value_key(value): value for value in (*first, *second)}.values())
