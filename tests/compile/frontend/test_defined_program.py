"""Numbers of any size: compiled to the program's own answers, or refused. Once 1e10 made 0, 1 and 2 one number."""

import math

import pytest
from rasp_examples import EQUAL, EVERYTHING

from rasplens.compile import (
    CompileError,
    PrecisionError,
    PrecisionWarning,
    UndefinedValue,
    compile_program,
    load_compiled,
    verify,
)
from rasplens.compile.rasp import (
    Aggregate,
    Encoding,
    Full,
    LinearSequenceMap,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    Where,
    indices,
    numerical,
    tokens,
)
from rasplens.compile.rasp.values import value_key
from rasplens.errors import RaspLensError

STAMPS = {"a": 1_700_000_000, "b": 1_700_000_001, "x": 1_699_999_999}


def number(values: dict):
    """A number by token."""
    return numerical(Map(values.__getitem__, tokens))


def same_answers(compiled) -> bool:
    """Whether a model answers exactly as its program, by type, value and sign."""
    sequences = list(compiled.inputs)
    return all(
        list(map(value_key, compiled(sequence))) == list(map(value_key, compiled.interpret(sequence)))
        for sequence in sequences
    )


HELD_APART = {
    "sentinel": numerical(Where(tokens == "x", Full(10**10), indices)),
    "time stamps": number(STAMPS),
    "difference of time stamps": numerical(
        LinearSequenceMap(number(STAMPS), numerical(Full(1_700_000_000)), 1, -1)
    ),
    "sentinel among what is looked up": numerical(Aggregate(EQUAL, number({"a": 0, "b": 1, "x": 10**9}))),
    "from 1e-12 to 1e18": number({"a": 1e-12, "b": 1e18, "x": 1}),
    "beyond every float": number({"a": 10**400, "b": 10**400 + 1, "x": 0}),
    "neighbours of a half": number({"a": 0.5, "b": math.nextafter(0.5, 1), "x": math.nextafter(0.5, 0)}),
    "a constant beyond the weights": numerical(Full(10**40)),
    "a large sum": numerical(LinearSequenceMap(numerical(indices), numerical(Full(10**12)), 1, 1)),
    "a function of time stamps": SequenceMap(lambda x, y: x - y, number(STAMPS), numerical(Full(1_700_000_000))),
    "a large pair": numerical(SequenceMap(lambda t, i: STAMPS[t] + i, tokens, indices)),
    "what cancels": numerical(
        LinearSequenceMap(
            numerical(LinearSequenceMap(number({"a": 10**6, "b": 0, "x": 1}), numerical(indices), 1, 1)),
            number({"a": 10**6, "b": 0, "x": 1}),
            1,
            -1,
        )
    ),
    "what is left of a huge mean": numerical(
        Aggregate(Select(tokens, tokens, lambda key, query: key == "a"), number({"a": 0, "b": 10**20, "x": 5}))
    ),
    "a true and a large number": numerical(Where(tokens == "a", Full(True), Full(10**12))),
}


@pytest.mark.filterwarnings("ignore::rasplens.compile.PrecisionWarning")
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("program", HELD_APART.values(), ids=HELD_APART)
def test_numbers_that_float32_cannot_hold_apart_get_one_direction_a_value(program, optimize, tmp_path):
    compiled = compile_program(program, ["a", "b", "x"], 3, optimize=optimize)
    assert verify(compiled).ok
    assert same_answers(compiled)
    compiled.save(tmp_path / "model.safetensors")
    loaded = load_compiled(tmp_path / "model.safetensors")
    assert verify(loaded).ok
    assert same_answers(loaded)


def test_numbers_that_are_held_apart_are_named():
    with pytest.warns(PrecisionWarning, match=r"float32.*'when'"):
        compiled = compile_program(number(STAMPS).named("when"), ["a", "b", "x"], 2)
    assert compiled.variables["when"].encoding is Encoding.CATEGORICAL


@pytest.mark.parametrize("value", [16_777_217, -(2**60) - 1, 1e25, 1 / 3, 123_456_789.123])
def test_a_lone_number_need_not_fit_into_float32(value):
    compiled = compile_program(numerical(Full(value)), ["a", "b"], 2)
    assert verify(compiled).ok
    assert same_answers(compiled)


def test_tokens_of_any_size_are_told_apart():
    with pytest.warns(PrecisionWarning, match=r"float32.*'tokens'"):
        compiled = compile_program(numerical(tokens), [10**18, 10**18 + 1, 3], 2)
    assert same_answers(compiled)


def test_zeros_keep_their_signs_where_they_are_classes():
    signed = compile_program(Map(lambda t: -0.0 if t == "a" else 0.0, tokens), ["a", "b"], 2)
    assert verify(signed).ok
    assert [str(value) for value in signed(["a", "b"])] == ["-0.0", "0.0"]
    plain = compile_program(number({"a": -0.0, "b": 0.5}), ["a", "b"], 2)
    assert str(plain(["a"])[0]) == str(plain.interpret(["a"])[0]) == "0"


@pytest.mark.parametrize("noise", [-2.96e-16, 1e-300, 5e-324])
def test_noise_is_the_answer_where_the_program_gives_noise(noise):
    with pytest.warns(PrecisionWarning):
        compiled = compile_program(number({"a": 0, "b": noise, "c": 1}), "abc", 2)
    assert compiled(["a", "b", "c"][:2]) == [0, noise]


@pytest.mark.parametrize(
    "program",
    [
        numerical(Aggregate(EVERYTHING, number(STAMPS))),
        numerical(Aggregate(EVERYTHING, number({"a": 0, "b": 1, "x": 10**9}))),
    ],
)
def test_what_is_averaged_must_be_held_as_a_number(program):
    with pytest.raises(PrecisionError, match=r"float32.*shift"):
        compile_program(program, ["a", "b", "x"], 3)


def test_a_selector_is_undefined_where_either_half_raises():
    """The first half always holds, which once hid that the second raises."""
    halves = Select(tokens, tokens, lambda key, query: True) | Select(
        tokens, tokens, lambda key, query: 1 / key > 0
    )
    for program in (SelectorWidth(halves), Aggregate(halves, Full(0)), SelectorWidth(~halves)):
        with pytest.raises(ValueError, match="ZeroDivisionError"):
            compile_program(program, [0, 1], 2)


def test_a_selector_is_no_program():
    with pytest.raises(CompileError, match=r"s-op.*Select.*Aggregate"):
        compile_program(EQUAL, "ab", 2)


@pytest.mark.parametrize("program", [5, None, "tokens"])
def test_a_program_is_an_s_op(program):
    with pytest.raises(RaspLensError, match=r"s-op.*got"):
        compile_program(program, "ab", 2)


@pytest.mark.slow
def test_depth_is_no_limit():
    selector, sop = EQUAL, tokens
    for _ in range(3001):
        selector, sop = ~selector, Map(lambda t: t, sop)
    compiled = compile_program(Aggregate(~selector, sop), "ab", 3)
    assert compiled("aba") == compiled.interpret("aba") == ["a", "b", "a"]


def test_a_program_that_reads_itself_is_refused():
    circle = Map(lambda t: t, Map(lambda t: t, tokens))
    object.__setattr__(circle.inner, "inner", circle)
    with pytest.raises(CompileError, match=r"'map'.*itself"):
        compile_program(circle, "ab", 2)


def test_an_undefined_input_that_no_search_saw_is_refused_at_the_call():
    """One input of twelve million; the answer was [None] * 5."""
    word = Aggregate(EVERYTHING, Full(0))
    for place, letter in enumerate("rasps"):
        here = Select(indices, indices, lambda key, query, place=place: key == place)
        is_letter = Map(lambda t, letter=letter: int(t == letter), tokens)
        word = SequenceMap(lambda n, hit: n + hit, word, Aggregate(here, is_letter, default=0))
    program = Map(lambda n: 1 // (5 - n), word)
    compiled = compile_program(program, "abcdefghijklmnopqrstuvwxyz", 5)
    assert compiled(list("raspb")) == compiled.interpret(list("raspb")) == [1] * 5
    with pytest.raises(UndefinedValue, match=r"no value.*'r', 'a', 's', 'p', 's'"):
        compiled(list("rasps"))
