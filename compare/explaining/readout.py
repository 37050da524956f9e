"""Programs for the answers, given the variables: a formula, or else a table."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, permutations

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.explaining.crossed import UNMET, Crossed
from rasplens.compare.explaining.gathered import WITH_DEFAULT, Step
from rasplens.compare.explaining.known import Inputs, Known, before, table_text
from rasplens.compare.explaining.mixed import Mixed, mixed
from rasplens.compare.explaining.sample import Sample
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.batch_interpreter import UNDEFINED
from rasplens.compile.rasp.values import is_number

MOST_READ = 3
"""Variables that a table reads, at most."""

MOST_KNOWN = 8
"""Of more variables, the first are read."""

MOST_CHOOSING = 2
"""Variables by which one of two others is chosen, at most."""

NO_WORSE = 0.005
"""A formula or a smaller table is taken if it is right on no more than this share of the answers fewer."""

UNREAD = 3.0
"""The price of a step of which nothing is read."""

RIGHT = 0.995
"""From this share on, no larger table is looked for."""

NO_WORSE_CROSSED = 0.02
"""That share of the answers on the sample crossed."""

MOST_DENOMINATOR = 100
"""Of numbers between two others, for which a simple one is looked for."""

Answers = Int[np.ndarray, "run input answer"]


@dataclass(frozen=True, eq=False)
class Readout:
    """A program for the answers.

    Attributes:
        program: The answers as a variable.
        agreement: The share of the model's answers that it has, on inputs that it was not read off.
        crossed: That share where what heads leave, or gather, comes from other inputs; the agreement where that is
            not known.
        cost: How long it is, with all that it reads.
        unread: Steps of which it reads nothing.
    """

    program: Known
    agreement: float
    crossed: float
    cost: float
    unread: int


def readout(crossed: Crossed, inputs: Inputs, known: Sequence[Known], steps: Sequence[Step]) -> Readout | None:
    """The shortest of the programs over some variables that have the most of the model's answers.

    Args:
        crossed: The model, where what heads leave comes from other inputs.
        inputs: The sample, as programs see it.
        known: The variables.
        steps: What heads do. A program that reads nothing that a step made does not say why its heads matter.
    """
    variables, seen = _different(inputs, known), _Seen(crossed, inputs, mixed(crossed.sample, inputs, steps))
    best: Readout | None = None

    def judged(program: Known, shares: tuple[float, float]) -> Readout:
        read = {one.name for one in before(program)}
        unread = sum(not any(one.name in read for one in step.made) for step in steps)
        return Readout(program, *shares, program.cost + UNREAD * unread, unread)

    for program in (*_formulas(crossed.sample, inputs, variables, steps), *seen.choices(variables)):
        best = _better(best, judged(program, seen.agreement(program)))
    for size in range(MOST_READ + 1):
        if best is not None and min(best.agreement, best.crossed) >= RIGHT and not best.unread:
            break
        for read in combinations(variables, size):
            shares = seen.agreement_of_table(read)
            if best is None or best.unread or _is_better(shares, (best.agreement, best.crossed)):
                table = seen.table(read)
                best = _better(best, None if table is None else judged(table, shares))
    return best


def _is_better(one: tuple[float, float], other: tuple[float, float]) -> bool:
    apart = one[0] - other[0], one[1] - other[1]
    return sum(apart) > 0 and (apart[0] > NO_WORSE or apart[1] > NO_WORSE_CROSSED)


def _better(one: Readout | None, other: Readout | None) -> Readout | None:
    if one is None or other is None:
        return one or other
    shares, others = (one.agreement, one.crossed), (other.agreement, other.crossed)
    if _is_better(shares, others) or _is_better(others, shares):
        return one if sum(shares) > sum(others) else other
    return min(one, other, key=lambda found: found.cost)


def _different(inputs: Inputs, known: Sequence[Known]) -> list[Known]:
    """The variables without those that are another one wherever answers are read."""
    at = list(inputs.task.loss_positions)
    found = {(one.codes[:, at].tobytes(), repr(one.values)): one for one in reversed(known)}  # the first of each
    return list(reversed(found.values()))[:MOST_KNOWN]


def _formulas(sample: Sample, inputs: Inputs, known: Sequence[Known], steps: Sequence[Step]) -> Iterator[Known]:
    """Variables themselves, that of each step where its heads matter, sums and differences, and comparisons."""
    bare = [_undefined_where_nothing(inputs, one) for one in known]
    texts: list[tuple[str, tuple[Known, ...], float]] = [(_as_it_is(one), (one,), 1.0) for one in bare]
    texts += [(text, reads, 1.5) for text, reads in _by_position(sample, inputs, steps)]
    for one, other in permutations(known, 2):
        signs = ("==", "!=", "<", "<=", "-", "+") if one.is_numbers and other.is_numbers else ("==", "!=")
        texts += [(f"{one.name} {sign} {other.name}", (one, other), 1.5) for sign in signs]
    for one in known:
        texts += [(text, (one,), 1.2) for text in _with_constants(one)]
    for text, reads, cost in texts:
        found = inputs.define("answer", text, reads, cost)
        if found is not None:
            yield found


def _by_position(sample: Sample, inputs: Inputs, steps: Sequence[Step]) -> Iterator[tuple[str, tuple[Known, ...]]]:
    """A choice by position: at each answer the variable of the one step whose heads matter there.

    Where no head matters and all answers are one, it is that answer.
    """
    asked = set(inputs.task.loss_positions)
    layer = max((step.group.layer for step in steps), default=0)
    last = [one for one in steps if one.group.layer == layer and one.made and asked & {*one.group.rows}]
    places = [sorted(asked & {*step.group.rows}) for step in last]
    if len(last) < 2 or sum(map(len, places)) > len(set().union(*places)):
        return
    read = [_undefined_where_nothing(inputs, step.made[0]) for step in last]
    text = read[-1].name
    for one, at in zip(read[-2::-1], places[-2::-1], strict=True):
        where = f"rasp.indices == {at[0]}" if len(at) == 1 else f"rasp.Map(lambda i: i in {at!r}, rasp.indices)"
        text = f"rasp.Where({where}, {one.name}, {text})"
    matters = np.isin(inputs.task.loss_positions, list(set().union(*places)))
    others = set(sample.answers[sample.studied.asked & ~matters].tolist())
    if len(others) > 1 or min(others, default=0) < 0:
        return
    if others:
        rows, other = sorted(set().union(*places)), inputs.task.outputs[others.pop()]
        text = f"rasp.SequenceMap(lambda i, x: x if i in {rows} else {other!r}, rasp.indices, {text})"
    yield text, tuple(read)


def _undefined_where_nothing(inputs: Inputs, one: Known) -> Known:
    """A variable that is undefined where it, or what it is computed from, stands for nothing selected."""
    needs = [_undefined_where_nothing(inputs, needed) for needed in one.needs]
    if not one.needs or (WITH_DEFAULT not in one.text and needs == list(one.needs)):
        return one
    found = inputs.define(one.name, one.text.replace(WITH_DEFAULT, ""), needs, 1.0)
    return one if found is None else replace(found, cost=one.cost)


def _as_it_is(one: Known) -> str:
    return one.name if one.needs else f"rasp.Map(lambda x: x, {one.name})"


def _with_constants(one: Known) -> Iterator[str]:
    if not one.is_numbers:
        yield from (f"{one.name} == {constant!r}" for constant in one.own_values[:MOST_KNOWN])
        return
    constants = sorted({value for value in one.own_values if is_number(value)})
    for least, most in pairwise(constants):
        between = None if int(least) == least and int(most) == most else _simplest(least, most)
        yield f"{one.name} > {least if between is None else between!r}"
        yield f"{one.name} < {most if between is None else between!r}"
    yield from (f"{one.name} == {constant!r}" for constant in constants)
    yield from (f"{one.name} {sign} {constant}" for constant in (1, 2) for sign in "+-")


def _simplest(least: int | float, most: int | float) -> float:
    """The number between two others with the smallest denominator."""
    middle = Fraction((least + most) / 2)
    simple = (middle.limit_denominator(largest) for largest in range(1, MOST_DENOMINATOR))
    return float(next((one for one in simple if least < one < most), middle))


@dataclass(frozen=True, eq=False)
class _Seen:
    """The answers of the model on the sample, and on the sample crossed and mixed; tables are read off all.

    Agreement is scored on the second half of the inputs.
    """

    crossed: Crossed
    inputs: Inputs
    mixed: Mixed | None

    @property
    def _at(self) -> list[int]:
        return list(self.inputs.task.loss_positions)

    @cached_property
    def _answers(self) -> Answers:
        sample = self.crossed.sample
        return np.stack(
            [sample.answers, self.crossed.answers, self.mixed.answers if self.mixed else sample.answers]
        )

    @cached_property
    def _second(self) -> Bool[np.ndarray, "run input answer"]:
        n = self._answers.shape[1]
        return np.broadcast_to((np.arange(n) >= n // 2)[:, None], self._answers.shape)

    def _keys(self, read: Sequence[Known]) -> Answers:
        """A number for the values of some variables; `UNMET` where one of them is not known."""
        key, met = np.zeros_like(self._answers), self.crossed.sample.studied.asked[None].repeat(3, axis=0)
        for one in read:
            codes = self.crossed.codes(one)
            on_mixed, values = self._mixed(one)
            runs = np.stack([one.codes, np.full_like(one.codes, UNMET) if codes is None else codes, on_mixed])
            runs = runs[:, :, self._at]
            key, met = key * len(values) + runs, met & (runs != UNMET)
        return np.where(met, key, UNMET)

    def _mixed(self, one: Known) -> tuple[Int[np.ndarray, "input pos"], tuple[Value, ...]]:
        """A variable on the sample mixed, as places in its values and then those that are new there."""
        return self.mixed.values(one) if self.mixed else (one.codes, one.values)

    def _shares(self, right: Bool[np.ndarray, "run input answer"], key: Answers) -> tuple[float, float]:
        where = (key != UNMET) & self._second
        where[1] &= ~self.crossed.moved[:, None] & bool(self.crossed.made)
        where[2] &= self.mixed is not None
        agreement, theirs = float(right[0][where[0]].mean()), right[1:][where[1:]]
        return agreement, float(theirs.mean()) if len(theirs) else agreement

    def agreement(self, program: Known) -> tuple[float, float]:
        """The shares of the answers that a program has: on the sample, and on the crossed and mixed ones."""
        key, codes = self._keys([program]), self.inputs.answers_of(self._mixed(program)[1])
        return self._shares(codes[np.maximum(key, UNDEFINED)] == self._answers, key)

    def _rule(self, key: Answers, where: Bool[np.ndarray, "run input answer"]) -> dict[int, int]:
        """By key, the commonest answer of the first to have it: sample, crossed within, mixed, crossed across."""
        there, moved = (key != UNMET) & where, self.crossed.moved[:, None]
        found: dict[int, int] = {}
        for run, of in ((0, there[0]), (1, there[1] & ~moved), (2, there[2]), (1, there[1] & moved)):
            found = _rule(key[run][of], self._answers[run][of]) | found
        return found

    def agreement_of_table(self, read: Sequence[Known]) -> tuple[float, float]:
        """The shares of the answers that a table has that is read off the first half of the inputs."""
        key = self._keys(read)
        rule = self._rule(key, ~self._second)
        said = np.array([rule.get(one, -9) for one in key.ravel().tolist()]).reshape(key.shape)
        return self._shares(said == self._answers, key)

    def choices(self, known: Sequence[Known]) -> Iterator[Known]:
        """Choices between two variables that together are all answers, by a table over one or two others."""
        bare = [_undefined_where_nothing(self.inputs, one) for one in known]
        asked = self.crossed.sample.studied.asked
        is_answer = {
            one: self.inputs.answers_of(one.values)[one.codes[:, self._at]] == self._answers[0] for one in bare
        }
        for then, otherwise in combinations(bare, 2):
            first, second = is_answer[then] & asked, is_answer[otherwise] & asked
            if (first | second).sum() < RIGHT * asked.sum() or max(
                first.sum(), second.sum()
            ) / asked.sum() > RIGHT:
                continue
            others = [one for one in bare if one not in (then, otherwise)]
            for read in (of for size in range(1, MOST_CHOOSING + 1) for of in combinations(others, size)):
                if (entries := self._where(first, first != second, read)) is None:
                    continue
                text = f"rasp.Where({table_text(entries, False, read)}, {then.name}, {otherwise.name})"
                found = self.inputs.define("answer", text, (*read, then, otherwise), 2.0 + 0.02 * len(entries))
                if found is not None:
                    yield found

    def _where(
        self,
        holds: Bool[np.ndarray, "input answer"],
        asked: Bool[np.ndarray, "input answer"],
        read: Sequence[Known],
    ) -> dict[tuple[object, ...], object] | None:
        """The values of some variables with which a condition holds; None where they do not tell it."""
        key = self._keys(read)[0][asked]
        rule = _rule(key, holds[asked].astype(int))
        if np.mean([rule[one] for one in key.tolist()] == holds[asked]) < RIGHT:
            return None
        of = [self._mixed(one)[1] for one in read]
        values = (_values(code, of) for code in rule if rule[code])
        return {one: True for one in values if None not in one}

    def table(self, read: Sequence[Known]) -> Known | None:
        """The table over some variables that has most of the answers on all inputs; else the commonest answer."""
        key, outputs, asked = self._keys(read), self.inputs.task.outputs, self.crossed.sample.studied.asked
        rule = self._rule(key, np.ones(key.shape, dtype=bool))
        common = Counter(self._answers[0][asked].tolist()).most_common(1)[0][0]
        of = [self._mixed(one)[1] for one in read]
        entries: dict[tuple[object, ...], object] = {}
        for code, answer in rule.items():
            values = _values(code, of)
            if answer >= 0 and answer != common and None not in values:
                entries[values] = outputs[answer]
        other = outputs[common]
        text = table_text(entries, other, read) if read else f"rasp.Map(lambda i: {other!r}, rasp.indices)"
        return self.inputs.define("answer", text, read, len(read) + 0.02 * len(entries))


def _rule(keys: np.ndarray, answers: np.ndarray) -> dict[int, int]:
    counts: dict[int, Counter[int]] = {}
    for key, answer in zip(keys.tolist(), answers.tolist(), strict=True):
        counts.setdefault(key, Counter())[answer] += 1
    return {key: count.most_common(1)[0][0] for key, count in counts.items()}


def _values(code: int, of: Sequence[Sequence[object]]) -> tuple[object, ...]:
    """The values that a key is made of, by variable one of its values."""
    found: list[object] = []
    for values in reversed(of):
        code, place = divmod(code, len(values))
        found.append(values[place])
    return tuple(reversed(found))
