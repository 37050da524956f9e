"""Variables of a program under search, each with the text that computes it.

The text is what is judged: a variable is built by evaluating its own text, and its values on the sample are what
the interpreter says of it.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compile import rasp
from rasplens.compile.rasp import Aggregate, SelectorWidth, SOp, Value
from rasplens.compile.rasp.batch_interpreter import UNDEFINED, BatchInterpreter, Evaluated
from rasplens.compile.rasp.values import is_number
from rasplens.tasks import Task
from rasplens.tasks.task import Ids


@dataclass(frozen=True, eq=False)
class Known:
    """A variable that is known.

    Attributes:
        name: In the program's text.
        text: What it is, as Python.
        needs: The variables that the text names.
        expr: The s-op.
        codes: Its value at every position of every input of the sample, as a place in `values`; 0 where undefined.
        values: Those that it takes; the first is None.
        fails: Where it fails, or reads what fails.
        cost: How long its text is, in steps.
    """

    name: str
    text: str
    needs: tuple["Known", ...]
    expr: SOp
    codes: Int[np.ndarray, "input pos"]
    values: tuple[Value, ...]
    fails: Bool[np.ndarray, "input pos"]
    cost: float

    @property
    def own_values(self) -> tuple[Value, ...]:
        """The values but for None."""
        return self.values[1:]

    @property
    def is_ordered(self) -> bool:
        """Whether its values are numbers, but for a marker or two."""
        n_numbers = sum(map(is_number, self.own_values))
        return n_numbers > 2 and n_numbers >= len(self.own_values) - 2

    @property
    def is_numbers(self) -> bool:
        """Whether all of its values are numbers."""
        return all(map(is_number, self.own_values))

    def numbers(self) -> Float[np.ndarray, "input pos"]:
        """Its values as numbers; NaN where one is none."""
        table = [float(value) if is_number(value) else np.nan for value in self.values]
        return np.array(table)[self.codes]

    @property
    def gathers(self) -> bool:
        """Whether it looks at other positions; else it follows from what it needs at its own."""
        return isinstance(self.expr, Aggregate | SelectorWidth)

    def defined(self) -> Bool[np.ndarray, "input pos"]:
        """Where it has a value."""
        return np.asarray(self.codes != UNDEFINED)


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a search, as programs see them.

    Attributes:
        task: Whose inputs.
        ids: The sample.
    """

    task: Task
    ids: Ids

    def primitives(self) -> list[Known]:
        """The tokens and the positions."""
        read = (self._read(name, name, (), eval(name), 1.0) for name in ("rasp.tokens", "rasp.indices"))
        return [known for known in read if known is not None]

    def answers_of(self, values: Sequence[Value]) -> Int[np.ndarray, " value"]:
        """The task's codes of values; -1 for what is no answer."""
        code: Mapping[str, int] = {repr(output): place for place, output in enumerate(self.task.outputs)}
        return np.array([code.get(repr(value), -1) for value in values])

    def define(self, name: str, text: str, needs: Sequence[Known], cost: float) -> Known | None:
        """A variable by its text; None where it is undefined at answers of the sample, or makes no sense.

        Nor if two variables that it is computed from have one name: its text could not name both.

        Args:
            name: In the program's text.
            text: What it is, as Python.
            needs: The variables that the text names.
            cost: Of the step, without those.
        """
        texts = {(one.name, one.text) for need in needs for one in before(need)}
        if len({read for read, _ in texts} | {name}) < len(texts) + 1:
            return None
        namespace = {"rasp": rasp, **{one.name: one.expr for one in needs}}
        try:
            expr = eval(text, namespace).named(name)
        except Exception:
            return None
        return self._read(name, text, tuple(needs), expr, cost + 0.2 * sum(one.cost - 1 for one in needs))

    def _read(self, name: str, text: str, needs: tuple[Known, ...], expr: SOp, cost: float) -> Known | None:
        given = [Evaluated(one.expr, one.codes, one.values, one.fails) for one in needs]
        reader = BatchInterpreter(expr, self.task.vocab, self.task.visible, given)
        codes, is_defined = reader.where_defined(self.ids)
        if not is_defined[:, list(self.task.loss_positions)].all():
            return None
        codes = np.where(is_defined, codes, UNDEFINED)
        used, places = np.unique(np.concatenate([[UNDEFINED], codes.ravel()]), return_inverse=True)
        values = tuple(reader.values[code] for code in used)
        return Known(name, text, needs, expr, places[1:].reshape(codes.shape), values, ~is_defined, cost)


def table_text(entries: Mapping[tuple[object, ...], object], other: object, read: Sequence[Known]) -> str:
    """The text of a table over one to three variables.

    Args:
        entries: By a value of each variable.
        other: What is said of all other values.
        read: The variables.
    """
    names = [one.name for one in read]
    if len(read) == 1:
        single = {key: value for (key,), value in entries.items()}
        return f"rasp.Map(lambda x: {single!r}.get(x, {other!r}), {names[0]})"
    given = f"{dict(entries)!r}.get"
    if len(read) == 2:
        return f"rasp.SequenceMap(lambda x, y: {given}((x, y), {other!r}), {names[0]}, {names[1]})"
    pair = f"rasp.SequenceMap(lambda x, y: (x, y), {names[0]}, {names[1]})"
    return f"rasp.SequenceMap(lambda p, z: {given}((*p, z), {other!r}), {pair}, {names[2]})"


def before(program: Known) -> list[Known]:
    """A variable and all that it is computed from, each behind what it needs."""
    found: dict[str, Known] = {}
    for one in program.needs:
        found |= {needed.name: needed for needed in before(one)}
    return list({**found, program.name: program}.values())


def program_source(program: Known) -> str:
    """The text of a program that runs; `program` is its result."""
    lines = [f"{one.name} = {_named(one)}" for one in before(program) if one.text != one.name]
    return "\n".join(["from rasplens.compile import rasp", "", *lines, f"program = {program.name}"]) + "\n"


def _named(one: Known) -> str:
    is_call = isinstance(ast.parse(one.text, mode="eval").body, ast.Call | ast.Name)
    return f"{one.text if is_call else f'({one.text})'}.named({one.name!r})"
