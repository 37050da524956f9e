"""Proof that a compiled model computes its program: on every input, or on a sample of too many."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rasplens.compile.compiled import CompiledModel
from rasplens.compile.errors import UndefinedValue
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.input_space import batches
from rasplens.compile.rasp.values import value_key
from rasplens.compile.variable import nearest

EXHAUSTIVE_LIMIT = 1_000_000
"""Input spaces of at most this many sequences are checked in full."""

SAMPLES = 2_000
"""How many sequences of a larger input space are checked."""

Progress = Callable[[int, int], None]
"""Called with (checked, to check)."""


@dataclass(frozen=True)
class Counterexample:
    """An input on which the model is wrong, and both answers."""

    tokens: tuple[Value, ...]
    expected: list[Value]
    got: list[Value]

    def __str__(self) -> str:
        unsure = " (but nearly another value)" if self.expected == self.got else ""
        return f"on {list(self.tokens)} the program says {self.expected}, the model {self.got}{unsure}"


@dataclass(frozen=True)
class Verification:
    """The outcome of comparing a model with its program.

    Attributes:
        checked: The number of sequences on which model and program were compared.
        total: The number of sequences that there are.
        exhaustive: Whether every one of them was checked, so that `ok` is a proof.
        undefined: On how many of the checked ones the program itself is undefined (they cannot be wrong).
        margin: The smallest decision margin: half the distance between two answers is 0.5, the ideal; at
            0, another answer would have been as near.
        counterexample: A smallest input on which the model is wrong; None if there is none.
    """

    checked: int
    total: int
    exhaustive: bool
    undefined: int
    margin: float
    counterexample: Counterexample | None

    @property
    def ok(self) -> bool:
        """Whether the model was right throughout, and there was something to be right about."""
        return self.counterexample is None and self.undefined < self.checked

    def __str__(self) -> str:
        extent = "all" if self.exhaustive else f"{self.checked:,} of"
        outside = f", {self.undefined:,} of them outside the program's domain" if self.undefined else ""
        if self.counterexample is None and self.undefined == self.checked:
            return f"NOTHING TO COMPARE: the program has no value on {extent} {_count(self.total)} inputs"
        verdict = "equal" if self.ok else f"WRONG: {self.counterexample}"
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
        ValueError: If a given sequence does not fit the model, or there is none to check.
    """
    exhaustive = inputs is None and compiled.inputs.size <= EXHAUSTIVE_LIMIT
    if exhaustive:
        sequences, to_check = iter(compiled.inputs), compiled.inputs.size
    else:
        chosen = list(_sample(compiled, samples, seed) if inputs is None else map(tuple, inputs))
        chosen.sort(key=len)
        sequences, to_check = iter(chosen), len(chosen)
    if to_check == 0:
        raise ValueError("There is no sequence to check: give some inputs, or at least one sample.")
    checked, undefined, margin = 0, 0, 0.5
    found = None
    for batch in batches(sequences):
        outcomes = _check(compiled, batch)
        checked += len(batch)
        undefined += sum(outcome.expected is None for outcome in outcomes)
        margin = min([margin, *(o.margin for o in outcomes if o.expected is not None)])
        if progress is not None:
            progress(checked, to_check)
        if found := next((outcome for outcome in outcomes if outcome.is_wrong), None):
            break
    counterexample = None if found is None else _shrink(compiled, found)
    exhaustive = exhaustive and counterexample is None
    return Verification(checked, compiled.inputs.size, exhaustive, undefined, margin, counterexample)


@dataclass(frozen=True)
class _Outcome:
    tokens: tuple[Value, ...]
    expected: list[Value] | None
    got: list[Value]
    margin: float
    tolerance: float

    @property
    def is_wrong(self) -> bool:
        """Whether the program is defined here and the model says another value, or a mixture of several."""
        if self.expected is None:
            return False
        pairs = zip(self.expected, self.got, strict=True)
        differs = any(value_key(expected) != value_key(got) for expected, got in pairs)
        return differs or self.margin < 0.5 - self.tolerance


def _check(compiled: CompiledModel, batch: Sequence[Sequence[Value]]) -> list[_Outcome]:
    output = compiled.variables[compiled.output]
    codes, errors = nearest(output, compiled.outputs(compiled.encode(batch)))
    values = (*output.values, None)
    answers = [[values[code] for code in row] for row in codes]
    margins = 0.5 - errors.max(axis=-1)
    return [
        _Outcome(tuple(tokens), _expected(compiled, tokens), got, float(margin), compiled.tolerance(output))
        for tokens, got, margin in zip(batch, answers, margins, strict=True)
    ]


def _expected(compiled: CompiledModel, tokens: Sequence[Value]) -> list[Value] | None:
    try:
        return compiled.interpret(tokens)
    except UndefinedValue:
        return None


def _shrink(compiled: CompiledModel, found: _Outcome) -> Counterexample:
    """A counterexample from which no token can be left out, or replaced by an earlier one of the vocabulary."""
    smaller: _Outcome | None = found
    while smaller is not None:
        found, smaller = smaller, None
        for candidate in _simpler(found.tokens, compiled.inputs.vocab):
            (outcome,) = _check(compiled, [candidate])
            if outcome.is_wrong:
                smaller = outcome
                break
    return Counterexample(found.tokens, found.expected or [], found.got)


def _simpler(tokens: tuple[Value, ...], vocab: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
    for position in range(len(tokens)):
        if len(tokens) > 1:
            yield tokens[:position] + tokens[position + 1 :]
    for token in dict.fromkeys(tokens):
        for earlier in vocab[: vocab.index(token)]:
            yield tuple(earlier if other == token else other for other in tokens)
    for position, token in enumerate(tokens):
        for earlier in vocab[: vocab.index(token)]:
            yield (*tokens[:position], earlier, *tokens[position + 1 :])


def _sample(compiled: CompiledModel, samples: int, seed: int) -> Iterator[tuple[Value, ...]]:
    rng = np.random.default_rng(seed)
    vocab = compiled.inputs.vocab
    for length in rng.integers(1, compiled.inputs.max_len + 1, samples):
        yield tuple(vocab[i] for i in rng.integers(len(vocab), size=length))


def _count(number: int) -> str:
    """A number as words: exact up to a billion, then to two digits, for more than a float can hold."""
    if number < 10**9:
        return f"{number:,}"
    exponent = len(str(number)) - 1
    return f"{number // 10 ** (exponent - 1) / 10}e{exponent}"
