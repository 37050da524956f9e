"""Random programs over numbers of every size: right to the last bit, type and sign, or refused."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from rasplens.compile import CompileError, PrecisionWarning, UndefinedValue, compile_program, load_compiled, verify
from rasplens.compile.passes.pipeline import ALL_PASSES
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Full,
    LinearSequenceMap,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    SOp,
    Where,
    indices,
    numerical,
    tokens,
)
from rasplens.compile.rasp.values import value_key

VOCAB = ("a", "b", "c")

NUMBERS = (
    0, 1, -1, 2, 0.0, -0.0, 0.5, 1 / 3, 0.1, 0.1 + 0.2, 1e-12, -1e-12, 5e-324, 1 / 999_983, 355 / 1009,
    16_777_216, 16_777_217, 10**9, 10**10, 10**18, 10**18 + 1, -(10**18), 1e18, 1e30, 1e31, -1e300, 10**40,
    1_700_000_000, 1_700_000_001, 1_700_000_000.5, math.nextafter(1.0, 2.0), True, False,
)  # fmt: skip
"""Sentinels, time stamps, noise, zeros of either sign, fractions with large denominators; beyond float32 too."""

some_numbers = st.sampled_from(NUMBERS)
factors = st.sampled_from((1, -1, 0.1, 1 / 3, 10**6, 1e-6, 1e12, 0))
comparisons = st.sampled_from((Comparison.EQ, Comparison.LT, Comparison.GEQ, Comparison.TRUE))
defaults = st.one_of(st.none(), some_numbers)


def by_token(row) -> SOp:
    return Map(dict(zip(VOCAB, row, strict=True)).__getitem__, tokens)


leaves = st.one_of(
    st.tuples(some_numbers, some_numbers, some_numbers).map(by_token),
    st.builds(Full, some_numbers),
    st.sampled_from([indices, SelectorWidth(Select(tokens, tokens, Comparison.EQ))]),
)


def grow(sops):
    """Programs whose values are numbers or None; encodings are drawn with them."""
    selectors = st.one_of(
        st.builds(Select, sops, sops, comparisons),
        st.builds(SelectBest, sops, sops, comparisons, sops),
        st.builds(lambda s, t: s & t, st.builds(Select, sops, sops, comparisons), st.just(OWN)),
        st.builds(lambda s: ~s, st.builds(Select, sops, sops, comparisons)),
    )
    classes = st.one_of(
        st.builds(Where, sops.map(lambda s: Map(bool, s)), sops, sops),
        st.builds(LinearSequenceMap, sops, sops, factors, factors),
        st.builds(Aggregate, selectors, sops, defaults),
        st.builds(SelectorWidth, selectors),
        st.builds(lambda x, y: SequenceMap(lambda a, b: a if a >= b else b, x, y), sops, sops),
        st.builds(lambda x: Map(lambda a: a * 0.1, x), sops),
    )
    return st.one_of(classes, classes.map(numerical))


OWN = Select(indices, indices, Comparison.EQ)

programs = st.recursive(st.one_of(leaves, leaves.map(numerical)), grow, max_leaves=5)

masks = st.one_of(
    st.none(),
    st.lists(st.booleans(), min_size=9, max_size=9).map(lambda cells: np.array(cells).reshape(3, 3)),
)

passes = st.one_of(st.booleans(), st.lists(st.sampled_from(ALL_PASSES), unique=True))


def expected(compiled, sequence) -> list[tuple] | None:
    """What the interpreter says, by type, value and sign; None where the program is undefined."""
    try:
        return list(map(value_key, compiled.interpret(sequence)))
    except UndefinedValue:
        return None


def check(program: SOp, mask, optimize, pad: bool, file=None) -> bool:
    """Whether it compiles; then it must be right, and if there is a file, be so when it is read back."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)
            compiled = compile_program(
                program, VOCAB, 3, mask=mask, optimize=optimize, partial="allow", pad=pad and mask is None
            )
    except CompileError:
        return False
    found = verify(compiled)
    assert found.counterexample is None, str(found)
    models = [compiled]
    if file is not None:
        compiled.save(file)
        models.append(load_compiled(file))
    wanted = {tuple(sequence): expected(compiled, sequence) for sequence in compiled.inputs}
    defined = [sequence for sequence, values in wanted.items() if values is not None]
    for model in models:
        answers = model.run_batch(defined) if defined else []
        for sequence, answer in zip(defined, answers, strict=True):
            assert list(map(value_key, answer)) == wanted[sequence], sequence
        for sequence in [sequence for sequence, values in wanted.items() if values is None][:2]:
            with pytest.raises(UndefinedValue):
                model(sequence)
    return True


RELAXED = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.slow
def test_random_numbers_are_answered_exactly_or_refused(tmp_path):
    compiled = []

    @settings(max_examples=60, derandomize=True, **RELAXED)
    @given(programs, masks, passes, st.booleans())
    def check_each(program, mask, optimize, pad):
        compiled.append(check(program, mask, optimize, pad, tmp_path / "model.safetensors"))

    check_each()
    assert sum(compiled) > len(compiled) / 4


PARTS = [pytest.param(part, marks=pytest.mark.slow if part < 6 else pytest.mark.release) for part in range(20)]
"""Of five hundred programs each."""


@pytest.mark.parametrize("part", PARTS)
def test_many_random_numbers_are_answered_exactly_or_refused(part, tmp_path):
    @seed(part)
    @settings(max_examples=500, database=None, **RELAXED)
    @given(programs, masks, passes, st.booleans(), st.integers(0, 9))
    def check_each(program, mask, optimize, pad, one_of_ten):
        check(program, mask, optimize, pad, tmp_path / "model.safetensors" if one_of_ten == 0 else None)

    check_each()
