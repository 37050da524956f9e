"""Proof that a compiled model computes its program: on every input, or on a sample of too many."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compile.compiled import CompiledModel
from rasplens.compile.errors import UndefinedValue
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter
from rasplens.compile.rasp.input_space import batches
from rasplens.compile.rasp.values import value_key
from rasplens.compile.variable import Variable, nearest
from rasplens.errors import RaspLensError, expect

EXHAUSTIVE_LIMIT = 1_000_000
"""Input spaces of at most this many sequences are checked in full."""

SAMPLES = 2_000
"""How many sequences of a larger input space are checked."""

PLAINLY = 1_000
"""On this many of them, chosen at random, the plain interpreter is run as well."""

Progress = Callable[[int, int], None]
"""Called with (checked, to check)."""


@dataclass(frozen=True)
class Counterexample:
    """An input on which the model is wrong, and both answers."""

    tokens: tuple[Value, ...]
    expected: list[Value]
    got: list[Value]

    def __str__(self) -> str:
        unsure = " (but too close to another value)" if self.expected == self.got else ""
        return f"on {list(self.tokens)} the program says {self.expected}, the model {self.got}{unsure}"


@dataclass(frozen=True)
class Verification:
    """The outcome of comparing a model with its program.

    Attributes:
        checked: The number of sequences on which model and program were compared.
        total: The number of sequences that there are.
        exhaustive: Whether every one of them was checked, so that `ok` is a proof.
        undefined: On how many of the checked ones the program itself is undefined at some position: there the
            model cannot be wrong.
        answers: How many answers were compared: one at each position at which the program has one.
        margin: The smallest decision margin: half the distance between two answers is 0.5, the ideal; at
            0, another answer would have been as near.
        counterexample: A smallest input on which the model is wrong; None if there is none.
    """

    checked: int
    total: int
    exhaustive: bool
    undefined: int
    answers: int
    margin: float
    counterexample: Counterexample | None

    @property
    def ok(self) -> bool:
        """Whether the model was right throughout, and there was something to be right about."""
        return self.counterexample is None and self.answers > 0

    def __str__(self) -> str:
        extent = "all" if self.exhaustive else f"{self.checked:,} of"
        outside = f", undefined at some position of {self.undefined:,} of them" if self.undefined else ""
        if self.counterexample is None and self.answers == 0:
            return f"NOTHING TO COMPARE: the program has no value on {extent} {_count(self.total)} inputs"
        verdict = "equal" if self.ok else f"WRONG: {self.counterexample}; compared"
        return f"{verdict} on {extent} {_count(self.total)} inputs{outside}; smallest margin {self.margin:.3f}"


def verify(
    compiled: CompiledModel,
    *,
    inputs: Iterable[Sequence[Value]] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Verification:
    """Compares a compiled model with its program, answer by answer.

    Args:
        compiled: The model.
        inputs: Sequences to check. By default all of them where there are at most `EXHAUSTIVE_LIMIT`,
            and otherwise a sample, of uniform length and uniform tokens.
        samples: The size of that sample.
        seed: Of the sample.
        progress: Called after every batch.

    Raises:
        RaspLensError: If a given sequence does not fit the model, or there is none to check.
    """
    expect(compiled, CompiledModel, "verify takes a compiled model, as compile_program(...) returns it")
    space = compiled.inputs
    exhaustive = inputs is None and space.size <= EXHAUSTIVE_LIMIT
    batches_of_ids: Iterable[np.ndarray]
    if inputs is not None:
        given = sorted((space.ids(tuple(tokens)) for tokens in inputs), key=len)
        batches_of_ids, to_check = map(np.array, batches(given)), len(given)
    elif exhaustive:
        batches_of_ids, to_check = space.all_ids(), space.size
    else:
        batches_of_ids, to_check = space.sampled_ids(samples, seed), samples
    if to_check == 0:
        raise RaspLensError("There is no sequence to check: give some inputs, or at least one sample.")
    tables = BatchInterpreter(compiled.program, space.vocab, space.visible)
    plainly = np.random.default_rng(seed).choice(to_check, min(PLAINLY, to_check), replace=False)
    checked, undefined, answers, margin, counterexample = 0, 0, 0, 0.5, None
    for ids in batches_of_ids:
        outcome = _check(compiled, tables, ids)
        for row in plainly[(checked <= plainly) & (plainly < checked + len(ids))] - checked:
            outcome.expected(row)
        checked += len(ids)
        undefined += int(outcome.is_undefined.sum())
        answers += int(outcome.is_known.sum())
        margin = min([margin, *outcome.margins])
        if progress is not None:
            progress(checked, to_check)
        if outcome.is_wrong.any():
            counterexample = _shrink(compiled, tables, outcome, int(outcome.is_wrong.argmax()))
            break
    exhaustive = exhaustive and counterexample is None
    return Verification(checked, space.size, exhaustive, undefined, answers, float(margin), counterexample)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """The answers of the program and of the model on some sequences of one length.

    Attributes:
        compiled: The model.
        ids: The sequences.
        wanted: What the program says, as codes of the model's result; `NO_CODE` for what that cannot say.
        is_undefined: On which sequences the program is undefined at some position.
        is_known: The positions at which nothing is undefined that the result reads.
        codes: What the model says.
        margins: Its smallest decision margins, there.
    """

    compiled: CompiledModel
    ids: Int[np.ndarray, "batch pos"]
    wanted: Int[np.ndarray, "batch pos"]
    is_undefined: Bool[np.ndarray, " batch"]
    is_known: Bool[np.ndarray, "batch pos"]
    codes: Int[np.ndarray, "batch pos"]
    margins: Float[np.ndarray, " batch"]

    @property
    def is_wrong(self) -> Bool[np.ndarray, " batch"]:
        """Where the program is defined and the model says another value, or a mixture of several."""
        tolerance = self.compiled.tolerance(self.compiled.variables[self.compiled.output])
        differs = ((self.wanted != self.codes) & self.is_known).any(axis=1)
        return differs | (self.margins < 0.5 - tolerance)

    def tokens(self, row: int) -> tuple[Value, ...]:
        """One of the sequences."""
        return tuple(self.compiled.inputs.vocab[i] for i in self.ids[row])

    def answers(self, codes: Int[np.ndarray, " pos"]) -> list[Value]:
        """The values of codes."""
        values = (*self.compiled.variables[self.compiled.output].values, None)
        return [None if code == NO_CODE else values[code] for code in codes]

    def expected(self, row: int) -> list[Value] | None:
        """Return the program's answers on one sequence, by the plain interpreter; None where it is undefined.

        Raises:
            RaspLensError: If the program does not always say the same.
            RuntimeError: If the tables say something else.
        """
        tokens = self.tokens(row)
        expected = _interpreted(self.compiled, tokens)
        output = self.compiled.variables[self.compiled.output]
        same = [] if expected is None else _codes_of(output, expected) == self.wanted[row]
        if bool(self.is_undefined[row]) != (expected is None) or not np.all(same):
            _check_deterministic(self.compiled, tokens)
            raise RuntimeError(
                f"The two RASP interpreters disagree about {self.compiled.output!r} on {list(tokens)}: the plain "
                f"one gives {expected}. This is a bug in RASPLens; please report it, with the program."
            )
        return expected


def _interpreted(compiled: CompiledModel, tokens: Sequence[Value]) -> list[Value] | None:
    try:
        return compiled.interpret(tokens)
    except UndefinedValue:
        return None


REPEATS = 30
"""How often a program is asked again before a model is called wrong."""


def _check_deterministic(compiled: CompiledModel, tokens: Sequence[Value]) -> None:
    """Raises if a program does not always say the same of a sequence.

    The compiler calls each function twice on the same arguments. Few of them may agree by chance.
    """
    first = _interpreted(compiled, tokens)
    for _ in range(REPEATS):
        if (again := _interpreted(compiled, tokens)) != first:
            raise RaspLensError(
                f"{compiled.output!r} is not deterministic: on {list(tokens)} it gives {first}, then {again}."
            )


NO_CODE = -2
"""Stands for a value that is none of the result's."""


def _codes_of(output: Variable, values: Sequence[Value]) -> Int[np.ndarray, " value"]:
    """The codes of values, -1 for undefined ones."""
    code_of = {value_key(value): code for code, value in enumerate(output.values)} | {value_key(None): -1}
    return np.array([code_of.get(value_key(value), NO_CODE) for value in values], dtype=int)


def _check(compiled: CompiledModel, tables: BatchInterpreter, ids: Int[np.ndarray, "batch pos"]) -> _Outcome:
    output = compiled.variables[compiled.output]
    said, is_undefined = tables(ids)
    is_known = np.ones(ids.shape, dtype=bool)
    if is_undefined.any():
        said, is_known = tables.where_defined(ids)
    codes, errors = nearest(output, compiled.transformer(compiled.with_bos(ids))[:, compiled.offset :])
    margins = 0.5 - np.where(is_known, errors, 0).max(axis=-1)
    wanted = _codes_of(output, tables.values)[said]
    return _Outcome(compiled, ids, wanted, is_undefined, is_known, codes, margins)


def _shrink(compiled: CompiledModel, tables: BatchInterpreter, found: _Outcome, row: int) -> Counterexample:
    """A counterexample from which no token can be left out, or replaced by an earlier one of the vocabulary."""
    smaller: _Outcome | None = found
    _check_deterministic(compiled, found.tokens(row))
    while smaller is not None:
        found, smaller = smaller, None
        for candidate in _simpler(found.ids[row]):
            if not compiled.inputs.holds(candidate.tolist()):
                continue
            outcome = _check(compiled, tables, candidate[None])
            if outcome.is_wrong.any():
                smaller, row = outcome, 0
                break
    expected = found.expected(row) or found.answers(np.where(found.is_known[row], found.wanted[row], -1))
    return Counterexample(found.tokens(row), expected, found.answers(found.codes[row]))


def _simpler(ids: Int[np.ndarray, " pos"]) -> Iterator[Int[np.ndarray, " pos"]]:
    for position in range(len(ids)):
        if len(ids) > 1:
            yield np.delete(ids, position)
    for token in dict.fromkeys(ids.tolist()):
        for earlier in range(token):
            yield np.where(ids == token, earlier, ids)
    for position, token in enumerate(ids.tolist()):
        for earlier in range(token):
            yield np.array([*ids[:position], earlier, *ids[position + 1 :]])


def _count(number: int) -> str:
    """A number as words: exact up to a billion, then to two digits, for more than a float can hold."""
    if number < 10**9:
        return f"{number:,}"
    exponent = len(str(number)) - 1
    return f"{number // 10 ** (exponent - 1) / 10}e{exponent}"
