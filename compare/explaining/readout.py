"""Programs for the answers, given the variables: a formula, or else a table."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.explaining.gathered import WITH_DEFAULT, Step
from rasplens.compare.explaining.heads import answer_codes
from rasplens.compare.explaining.known import Inputs, Known, before
from rasplens.compare.explaining.sample import Sample
from rasplens.compile.rasp.values import is_number

MOST_READ = 3
"""Variables that a table reads, at most."""

MOST_KNOWN = 8
"""Of more variables, the first are read."""

NO_WORSE = 0.005
"""A formula or a smaller table is taken if it is right on no more than this share of the answers fewer."""

UNREAD = 3.0
"""The price of a step of which nothing is read."""

RIGHT = 0.995
"""From this share on, no larger table is looked for."""

Asked = Bool[np.ndarray, "input answer"]


@dataclass(frozen=True, eq=False)
class Readout:
    """A program for the answers.

    Attributes:
        program: The answers as a variable.
        agreement: The share of the model's answers that it has, on inputs that it was not read off.
        cost: How long it is, with all that it reads.
        unread: Steps of which it reads nothing.
    """

    program: Known
    agreement: float
    cost: float
    unread: int


def readout(sample: Sample, inputs: Inputs, known: Sequence[Known], steps: Sequence[Step]) -> Readout | None:
    """The shortest of the programs over some variables that have the most of the model's answers.

    Args:
        sample: The model.
        inputs: The sample, as programs see it.
        known: The variables.
        steps: What heads do. A program that reads nothing that a step made does not say why its heads matter.
    """
    variables = _different(inputs, known)
    asked, second = sample.studied.asked, np.arange(len(sample)) >= len(sample) // 2
    best: Readout | None = None

    def judged(program: Known, agreement: float | None = None) -> Readout:
        if agreement is None:
            right = answer_codes(inputs, program)[:, list(inputs.task.loss_positions)] == sample.answers
            agreement = float(right[asked & second[:, None]].mean())
        read = {one.name for one in before(program)}
        unread = sum(not any(one.name in read for one in step.made) for step in steps)
        return Readout(program, agreement, program.cost + UNREAD * unread, unread)

    for program in _formulas(sample, inputs, variables, steps):
        best = _better(best, judged(program))
    for size in range(MOST_READ + 1):
        if best is not None and best.agreement >= RIGHT and not best.unread:
            break
        for read in combinations(variables, size):
            agreement = _agreement(sample, inputs, read, asked, second)
            if best is None or best.unread or agreement > best.agreement + NO_WORSE:
                table = _table(sample, inputs, read, asked)
                best = _better(best, None if table is None else judged(table, agreement))
    return best


def _better(one: Readout | None, other: Readout | None) -> Readout | None:
    if one is None or other is None:
        return one or other
    if abs(one.agreement - other.agreement) <= NO_WORSE:
        return min(one, other, key=lambda found: found.cost)
    return max(one, other, key=lambda found: found.agreement)


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
    yield from (f"{one.name} {sign} {constant!r}" for constant in constants for sign in (">", "<", "=="))
    yield from (f"{one.name} {sign} {constant}" for constant in (1, 2) for sign in "+-")


def _keys(inputs: Inputs, read: Sequence[Known], n_answers: tuple[int, int]) -> Int[np.ndarray, "input answer"]:
    at = list(inputs.task.loss_positions)
    key = np.zeros(n_answers, dtype=np.int64)
    for one in read:
        key = key * len(one.values) + one.codes[:, at]
    return key


def _agreement(
    sample: Sample, inputs: Inputs, read: Sequence[Known], asked: Asked, second: Bool[np.ndarray, " input"]
) -> float:
    """Return the agreement on the second half of the inputs of a table that is read off the first."""
    key, answers = _keys(inputs, read, sample.answers.shape), sample.answers
    own = asked & ~second[:, None]
    rule = _rule(key[own], answers[own])
    there = asked & second[:, None]
    given = np.array([rule.get(one, -9) for one in key[there].tolist()])
    return float((given == answers[there]).mean())


def _rule(keys: np.ndarray, answers: np.ndarray) -> dict[int, int]:
    counts: dict[int, Counter[int]] = {}
    for key, answer in zip(keys.tolist(), answers.tolist(), strict=True):
        counts.setdefault(key, Counter())[answer] += 1
    return {key: count.most_common(1)[0][0] for key, count in counts.items()}


def _table(sample: Sample, inputs: Inputs, read: Sequence[Known], asked: Asked) -> Known | None:
    """The table over some variables that has most of the answers on all inputs; else the commonest answer."""
    key, answers, outputs = _keys(inputs, read, sample.answers.shape), sample.answers, inputs.task.outputs
    rule = _rule(key[asked], answers[asked])
    common = Counter(answers[asked].tolist()).most_common(1)[0][0]
    sizes = [len(one.values) for one in read]
    entries: dict[object, object] = {}
    for code, answer in rule.items():
        values = _values(code, sizes, read)
        if answer >= 0 and answer != common and None not in values:
            entries[values[0] if len(values) == 1 else values] = outputs[answer]
    names, other = [one.name for one in read], outputs[common]
    given = f"{entries!r}.get"
    if not read:
        text = f"rasp.Map(lambda i: {other!r}, rasp.indices)"
    elif len(read) == 1:
        text = f"rasp.Map(lambda x: {given}(x, {other!r}), {names[0]})"
    elif len(read) == 2:
        text = f"rasp.SequenceMap(lambda x, y: {given}((x, y), {other!r}), {names[0]}, {names[1]})"
    else:
        pair = f"rasp.SequenceMap(lambda x, y: (x, y), {names[0]}, {names[1]})"
        text = f"rasp.SequenceMap(lambda p, z: {given}((*p, z), {other!r}), {pair}, {names[2]})"
    return inputs.define("answer", text, read, len(read) + 0.02 * len(entries))


def _values(code: int, sizes: Sequence[int], read: Sequence[Known]) -> tuple[object, ...]:
    places: list[int] = []
    for size in reversed(sizes):
        code, place = divmod(code, size)
        places.append(place)
    return tuple(one.values[place] for one, place in zip(read, reversed(places), strict=True))
