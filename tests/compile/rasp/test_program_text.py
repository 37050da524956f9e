"""A program as text: what it says is the program, and where source is gone, it says so."""

import pytest

from rasplens.compile import load_compiled, programs, rasp, run
from rasplens.compile.rasp import Aggregate, Comparison, Full, Map, Select, SelectorWidth, indices, tokens
from rasplens.compile.rasp.program_text import function_text, program_text
from rasplens.compile.rasp.programs import bottleneck, sorting
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.compile.rasp.values import value_key

CAPTURES_A_FUNCTION = {"nary_map"}


def built_from(text: str) -> rasp.SOp:
    """The program that a text builds when Python runs it."""
    names = {**vars(rasp), **vars(sorting), **vars(bottleneck)}
    exec(text, names)
    return names[text.splitlines()[-1].partition(" = ")[0]]


@pytest.mark.parametrize("name", sorted(set(CATALOGUE) - CAPTURES_A_FUNCTION))
def test_run_as_python_the_text_is_the_program(name):
    entry = CATALOGUE[name]
    program = entry.build()
    again = built_from(program_text(program))
    vocab, causal = list(entry.vocab), "causal" in dict(entry.options)
    inputs = [
        [vocab[(i * k + shift) % len(vocab)] for i in range(entry.max_len)] for k in (1, 2, 3) for shift in (0, 1)
    ]
    for given in inputs:
        expected, found = (run(one, given, causal=causal) for one in (program, again))
        assert list(map(value_key, found)) == list(map(value_key, expected))


def test_what_is_read_twice_or_named_has_a_line_of_its_own():
    twice = tokens + 1
    program = Map(lambda x: x * 2, twice + twice).named("doubled")
    assert program_text(program) == "tokens_1 = tokens + 1\ndoubled = Map(lambda x: x * 2, (tokens_1 + tokens_1))"
    named = Map(lambda x: x * 2, (tokens + 1).named("next")).named("doubled")
    assert program_text(named) == "next = tokens + 1\ndoubled = Map(lambda x: x * 2, next)"


def test_names_that_python_does_not_take_or_that_are_taken_are_changed():
    first, second = Full(1).named("x"), (tokens + 1).named("2nd value!")
    third = (tokens + 2).named("tokens")
    text = program_text((first + second + third).named("x"))
    assert text.splitlines()[0] == "_2nd_value = tokens + 1"
    assert text.splitlines()[1] == "tokens_2 = tokens + 2"
    assert text.splitlines()[-1].startswith("x = ")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (1 - tokens, "_1_tokens = 1 - tokens"),
        (~(tokens == "a"), "not_tokens_a = ~(tokens == 'a')"),
        ((tokens == "a") & (tokens == "b"), "tokens_a_and_tokens_b = (tokens == 'a') & (tokens == 'b')"),
        (SelectorWidth(~Select(tokens, tokens, Comparison.LEQ)),
         "selector_width = SelectorWidth(~Select(tokens, tokens, Comparison.LEQ))"),
        (Aggregate(Select(tokens, indices, Comparison.EQ), tokens, 0),
         "aggregate = Aggregate(Select(tokens, indices, Comparison.EQ), tokens, 0)"),
        (rasp.ConstantSOp([1, 2]) + 0, "constant_sop_0 = ConstantSOp((1, 2)) + 0"),
        (rasp.LinearSequenceMap(tokens, indices, 2, -1),
         "linear_sequence_map = LinearSequenceMap(tokens, indices, 2, -1)"),
        (rasp.numerical(tokens == "a").named("is_a"), "is_a = numerical(tokens == 'a')"),
    ],
)  # fmt: skip
def test_each_kind_of_expression(expression, text):
    assert program_text(expression) == text


AND_MORE = Select(tokens, tokens, lambda key, query: (
    key == query
    and any(y > key for y in (1, 2))
)).predicate  # fmt: skip


def both(): return (lambda x: x + 1), (lambda x: x + 2)  # fmt: skip


def test_of_several_lambdas_in_a_line_each_is_shown_as_itself():
    first, second = both()
    assert (function_text(first), function_text(second)) == ("lambda x: x + 1", "lambda x: x + 2")
    assert function_text(AND_MORE) == "lambda key, query: key == query and any((y > key for y in (1, 2)))"


def test_what_was_captured_is_shown_by_its_value():
    def above(least, others):
        return lambda x: x > least and x not in others

    assert function_text(above(3, [4])) == "lambda x: x > 3 and x not in others"


def test_without_source_nothing_is_made_up():
    assert function_text(eval("lambda x: x + 41")) == "lambda x: ..."
    assert function_text(len) == "len"
    assert function_text(Comparison.EQ.__call__) == "__call__"


def test_a_stored_program_says_that_its_functions_are_tables(tmp_path):
    from rasplens.compile import compile_program

    compile_program(programs.offset(2), "ab", 3, causal=True).save(tmp_path / "offset.safetensors")
    text = program_text(load_compiled(tmp_path / "offset.safetensors").program)
    assert "lambda" not in text
    assert text.splitlines()[-1] == "offset = Aggregate(one_period_back, tokens)"


def test_programs_of_the_library_say_what_they_compute():
    for name, entry in CATALOGUE.items():
        about = entry.build().annotations["about"]
        assert about.endswith("."), name
        assert "\n" not in about, name
