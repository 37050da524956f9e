"""Every program of the library: its examples, its plain meaning in Python, and its compiled model."""

import doctest
import importlib
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from rasplens.compile import CausalWarning, compile_program, programs, rasp, run, verify
from rasplens.compile.rasp import SOp, indices, tokens

MODULES = ("balancing", "bottleneck", "copying", "counting", "moving", "sorting")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings(name):
    found = doctest.testmod(importlib.import_module(f"rasplens.compile.rasp.programs.{name}"))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("name", programs.__all__)
def test_every_docstring_has_an_example_and_says_what_becomes_of_it_causally(name):
    text = getattr(programs, name).__doc__
    assert "Example:" in text
    assert "ausal-safe" in text


@dataclass(frozen=True)
class Case:
    """A program, what it means, and inputs small enough to try all."""

    program: Callable[[], SOp]
    meaning: Callable[[list], list]
    vocab: str | list = "abc"
    max_len: int = 4
    causal_safe: bool = False


def double_histogram(sequence):
    counts = Counter(sequence)
    of_counts = Counter(counts.values())
    return [of_counts[counts[token]] for token in sequence]


def pattern_ends(sequence):
    return [None] + [tuple(pair) == ("a", "b") for pair in itertools.pairwise(sequence)]


def shares(sequence):
    return [Counter(sequence[: i + 1])["a"] / (i + 1) for i in range(len(sequence))]


def balance(sequence):
    signs = [(token == "(") - (token == ")") for token in sequence]
    return [sum(signs[: i + 1]) / (i + 1) for i in range(len(signs))]


def is_shuffle_dyck(sequence):
    def matches(opening, closing):
        depth = 0
        for token in sequence:
            depth += (token == opening) - (token == closing)
            if depth < 0:
                return False
        return depth == 0

    return [matches("(", ")") and matches("{", "}")] * len(sequence)


CASES = {
    "length": Case(programs.length, lambda s: [len(s)] * len(s)),
    "histogram": Case(programs.histogram, lambda s: [s.count(token) for token in s]),
    "histogram_nd": Case(programs.histogram_nd, double_histogram),
    "histogram_nd of depth 1": Case(lambda: programs.histogram_nd(1), lambda s: [s.count(token) for token in s]),
    "count": Case(lambda: programs.count("a"), lambda s: [s.count("a")] * len(s)),
    "count_less_frequent": Case(
        lambda: programs.count_less_frequent(2), lambda s: [sum(s.count(token) <= 2 for token in s)] * len(s)
    ),
    "most_frequent": Case(programs.most_frequent, lambda s: [max(s, key=s.count)] * len(s)),
    "reverse": Case(programs.reverse, lambda s: s[::-1]),
    "shift_by": Case(lambda: programs.shift_by(2), lambda s: [None, None, *s][: len(s)], causal_safe=True),
    "shift_by backwards": Case(lambda: programs.shift_by(-1), lambda s: [*s[1:], None]),
    "detect_pattern": Case(lambda: programs.detect_pattern("ab"), pattern_ends, causal_safe=True),
    "nary_map": Case(
        lambda: programs.nary_map(lambda x, y, z: x + y - z, tokens, tokens, indices),
        lambda s: [2 * x - i for i, x in enumerate(s)],
        vocab=[1, 2, 5],
        causal_safe=True,
    ),
    "frac_prevs": Case(lambda: programs.frac_prevs(tokens == "a"), shares, causal_safe=True),
    "pair_balance": Case(lambda: programs.pair_balance("(", ")"), balance, vocab="()x", causal_safe=True),
    "shuffle_dyck": Case(lambda: programs.shuffle_dyck(["()", "{}"]), is_shuffle_dyck, vocab="(){}"),
    "sort_unique": Case(
        programs.sort_unique,
        lambda s: sorted(s) if len(set(s)) == len(s) else None,
        vocab=[3, 1, 4, 5],
    ),
    "sort": Case(programs.sort, sorted, vocab=[3, 1, 4]),
    "sort_by_frequency": Case(
        programs.sort_by_frequency, lambda s: sorted(s, key=lambda token: -s.count(token)), max_len=5
    ),
}  # fmt: skip


@pytest.fixture(params=CASES)
def named(request) -> Case:
    return CASES[request.param]


def test_it_means_what_it_says_on_every_short_input(named):
    program, told = named.program(), 0
    for length in range(1, named.max_len + 1):
        for sequence in itertools.product(named.vocab, repeat=length):
            meant = named.meaning(list(sequence))
            if meant is not None:
                told += 1
                assert run(program, sequence) == pytest.approx(meant), sequence
    assert told > 20


@pytest.mark.parametrize("causal", [False, True])
def test_compiled_it_is_the_program_on_every_short_input(named, causal):
    program = rasp.causal(named.program())
    for optimize in (True, False):
        found = verify(compile_program(program, named.vocab, named.max_len, causal=causal, optimize=optimize))
        assert found.ok, str(found)
        assert found.exhaustive
        assert found.undefined == 0


def test_causal_safe_programs_are_those_without_a_warning(named):
    program = named.program()
    if program.annotations.get("causal"):
        pytest.skip("meant to be read causally")
    if named.causal_safe:
        compile_program(program, named.vocab, named.max_len, causal=True)
        return
    with pytest.warns(CausalWarning):
        compile_program(program, named.vocab, named.max_len, causal=True)
