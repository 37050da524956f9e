"""Means of what is not held as numbers: numbers and "BOS" in one vocabulary are the rule."""

import pytest
from rasp_examples import EVERYTHING

from rasplens.compile import CompileError, CompileLimits, UndefinedValue, compile_program, run, verify
from rasplens.compile.analysis.domains import Averaged
from rasplens.compile.frontend.means import is_mean_alone, is_plain, mean_in_parts, mean_of_numbers
from rasplens.compile.rasp import (
    Aggregate,
    Full,
    LinearSequenceMap,
    Map,
    Select,
    Where,
    categorical,
    indices,
    numerical,
    tokens,
)
from rasplens.compile.rasp.values import value_key

VOCAB = [1, 2, "BOS"]
WORDS = Select(tokens, tokens, lambda key, query: key != "BOS")
ALIKE = Select(tokens, tokens, lambda key, query: (key == "BOS") == (query == "BOS"))
ONES = Select(tokens, tokens, lambda key, query: key == 1)
A = Select(tokens, tokens, lambda key, query: key == "a")

MEANS = {
    "words": (Aggregate(WORDS, tokens), VOCAB),
    "words or BOS": (Aggregate(ALIKE, tokens), VOCAB),
    "a word as default": (Aggregate(WORDS, tokens, default="none"), VOCAB),
    "a bool as default": (Aggregate(WORDS, tokens, default=True), VOCAB),
    "a whole float as default": (Aggregate(WORDS, numerical(Where(tokens == "BOS", Full(0), tokens)), 0.0), VOCAB),
    "a default of classes": (Aggregate(ONES, tokens, default="none"), VOCAB),
    "a mean of means": (Aggregate(EVERYTHING, Aggregate(WORDS, tokens, default=0)), VOCAB),
    "True is not 1": (Aggregate(EVERYTHING, tokens), [True, 1, 0]),
    "every form": (Aggregate(EVERYTHING, tokens), [True, 1, 1.0, 0, 0.5]),
    "a whole float between fractions": (Aggregate(EVERYTHING, tokens), [0.5, 1.0, 1.5]),
    "bools": (Aggregate(EVERYTHING, tokens == "a"), ["a", "b"]),
    "bools, and a number as default": (Aggregate(A, indices == 0, default=1), ["a", "b"]),
    "numbers": (numerical(Aggregate(WORDS, tokens)), VOCAB),
    "numbers with a default": (numerical(Aggregate(WORDS, tokens, default=0)), VOCAB),
    "a branch of numbers": (numerical(Where(tokens == "BOS", Full(7), tokens)), VOCAB),
    "a sum of branches": (
        numerical(LinearSequenceMap(Where(tokens == "BOS", Full(7), tokens), indices, 1, -1)),
        VOCAB,
    ),
    "a sum beside undefined": (
        numerical(LinearSequenceMap(tokens, Map(lambda t: None if t == "BOS" else t, tokens), 1, 1)),
        VOCAB,
    ),
}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(("program", "vocab"), MEANS.values(), ids=MEANS)
def test_means_keep_the_type_of_what_is_all_one(program, vocab, optimize):
    compiled = compile_program(program, vocab, 3, optimize=optimize)
    assert verify(compiled).ok
    for sequence in compiled.inputs:
        assert list(map(value_key, compiled(sequence))) == list(map(value_key, compiled.interpret(sequence)))


@pytest.mark.parametrize("name", ["words", "numbers", "a branch of numbers"])
def test_what_is_selected_is_known_without_running_the_inputs(name):
    program, vocab = MEANS[name]
    found = verify(compile_program(program, vocab, 4, limits=CompileLimits(executed_inputs=0)))
    assert found.ok
    assert found.exhaustive


def test_a_mixture_of_numbers_and_classes_stays_undefined():
    mixed = Aggregate(EVERYTHING, tokens)
    with pytest.raises(CompileError, match=r"mean of \[1, 'BOS'\]"):
        compile_program(mixed, VOCAB, 2)
    compiled = compile_program(mixed, VOCAB, 2, partial="allow")
    assert compiled([1, 2]) == [1.5, 1.5]
    assert compiled(["BOS", "BOS"]) == ["BOS", "BOS"]
    with pytest.raises(UndefinedValue):
        compiled([1, "BOS"])


REFUSED = {
    "aggregate": lambda mark: mark(Aggregate(EVERYTHING, tokens)),
    "selected alone": lambda mark: mark(Aggregate(ALIKE, tokens)),
    "choice": lambda mark: mark(Where(tokens == 1, Full(0), tokens)),
    "default": lambda mark: mark(Aggregate(WORDS, tokens, default="none")),
}


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED)
def test_a_number_that_is_none_is_refused_with_an_input_and_a_remedy_that_works(program):
    with pytest.raises(CompileError, match=r"'\w+'.*categorical.*\['BOS'\]"):
        compile_program(program(numerical), VOCAB, 3, partial="allow")
    for mended in (program(categorical), program(lambda sop: sop)):
        assert verify(compile_program(mended, VOCAB, 3, partial="allow")).ok


def test_what_is_added_up_has_to_be_numbers():
    total = numerical(LinearSequenceMap(tokens, indices, 1, 1))
    with pytest.raises(CompileError, match=r"'tokens'.*'BOS'.*Map.*\['BOS'\]"):
        compile_program(total, VOCAB, 2)
    mapped = Map(lambda token: 0 if token == "BOS" else token, tokens)
    assert verify(compile_program(numerical(LinearSequenceMap(mapped, indices, 1, 1)), VOCAB, 2)).ok


def test_what_no_input_reaches_refuses_nothing():
    """Of the last two tokens, never are both 2: so the sum is never 4, of which the function makes a word."""
    last = Aggregate(Select(indices, indices, lambda key, query: key == 0), tokens)
    other = Map(lambda token: 2 - token, last)
    program = numerical(Map(lambda n: "many" if n == 4 else n, numerical(LinearSequenceMap(last, other, 1, 1))))
    assert verify(compile_program(program, [0, 1, 2], 3)).ok
    with pytest.raises(CompileError, match=r"'many'.*executed_inputs"):
        compile_program(program, [0, 1, 2], 3, limits=CompileLimits(executed_inputs=20))
    assert verify(compile_program(program, [0, 1, 2], 3, limits=CompileLimits(executed_inputs=39))).ok


def test_every_branch_is_looked_at_before_any_is_read_as_numbers():
    """Once, what the first branch does not read was taken for what no branch does, and "BOS" became 0."""
    both = numerical(Where(tokens == 1, tokens, tokens))
    total = numerical(LinearSequenceMap(Map(lambda t: None if t == "BOS" else t, tokens), tokens, 1, 1))
    with pytest.raises(CompileError, match=r"'where'.*numerical.*'BOS'.*\['BOS'"):
        compile_program(both, VOCAB, 2)
    assert verify(compile_program(total, VOCAB, 2)).ok


@pytest.mark.parametrize("limits", [CompileLimits(), CompileLimits(executed_inputs=0)])
def test_means_of_means_know_all_that_those_come_to(limits):
    """True is told by a mean of 1 among True and 0, but not beside 1.5, which is a mean itself."""
    share = Aggregate(EVERYTHING, Map(lambda t: 3 * (t == "a"), tokens))
    mixed = Where(indices == 0, tokens == "a", share)
    assert verify(compile_program(Aggregate(EVERYTHING, mixed), ["a", "b"], 4, limits=limits)).ok


@pytest.mark.parametrize(
    ("value", "plain"), [(1, True), (0.5, True), (True, False), (1.0, False), (-0.0, False), ("a", False)]
)
def test_plain_numbers_are_those_that_means_give(value, plain):
    assert is_plain(value) is plain


def test_a_mean_alone_tells_all_of_plain_numbers():
    assert is_mean_alone(Averaged((1, 2), (1, 2)), 0)
    assert is_mean_alone(Averaged((1, 2), (1, 2)), None)
    assert not is_mean_alone(Averaged((1, 2), (1, 2)), "none")
    assert not is_mean_alone(Averaged((1, 2, "BOS"), (1, 2)), 0)
    assert not is_mean_alone(Averaged((1, True), (1, True)), 0)


def test_parts_of_a_mean_are_means_and_lookups_of_the_same_meaning():
    mean = Aggregate(ALIKE, tokens, default="none").named("mean")
    parts = mean_in_parts(mean, Averaged((1, 2, "BOS"), (1, 2, "BOS")))
    numbers = mean_of_numbers(Aggregate(WORDS, tokens), Averaged((1, 2, "BOS"), (1, 2)))
    assert parts.name == "mean"
    for sequence in ([1, 2], ["BOS"], ["BOS", 1, 2, 2]):
        assert run(parts, sequence) == run(mean, sequence)
        assert run(numbers, sequence) == run(Aggregate(WORDS, tokens), sequence)
