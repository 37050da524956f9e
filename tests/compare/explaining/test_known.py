"""Variables by their text."""

import numpy as np
import pytest

from rasplens.compare.explaining.known import before, program_source
from rasplens.compile import rasp, run


@pytest.fixture
def inputs(histogram):
    return histogram[1]


def test_a_variable_has_the_values_that_the_interpreter_gives(inputs):
    tokens, indices = inputs.primitives()
    for text, needs in (
        ("rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q))", (tokens,)),
        ("rasp.tokens + rasp.indices", (tokens, indices)),
    ):
        one = inputs.define("one", text, needs, 1.0)
        if one is None:
            assert "+" in text  # a letter and a number have no sum
            continue
        for ids, codes in zip(inputs.ids, one.codes, strict=True):
            assert [one.values[code] for code in codes] == run(one.expr, [inputs.task.vocab[i] for i in ids])


def test_what_makes_no_sense_is_no_variable(inputs):
    tokens, _ = inputs.primitives()
    assert inputs.define("one", "rasp.Select(rasp.tokens)", (tokens,), 1.0) is None
    assert inputs.define("one", "rasp.tokens - 1", (tokens,), 1.0) is None


def test_what_is_undefined_has_no_number_and_says_so(inputs):
    none = inputs.define("none", "rasp.Map(lambda x: 1 if x == 'a' else None, rasp.tokens)", (), 1.0)
    np.testing.assert_array_equal(none.defined(), inputs.ids == 0)
    assert np.isnan(none.numbers()[inputs.ids != 0]).all()
    assert not none.is_ordered


def test_the_source_runs_and_is_the_program(inputs):
    tokens, _ = inputs.primitives()
    same = "rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)"
    count = inputs.define("n", f"rasp.SelectorWidth({same})", (tokens,), 2.0)
    answer = inputs.define("answer", "n - 1", (count,), 1.0)
    assert [one.name for one in before(answer)] == ["rasp.tokens", "n", "answer"]
    namespace = {}
    exec(program_source(answer), namespace)
    assert namespace["program"].name == "answer"
    assert run(namespace["program"], "aab") == run(answer.expr, "aab") == [1, 1, 0]
    assert isinstance(namespace["n"], rasp.SelectorWidth)


def test_a_text_cannot_name_two_variables_alike(inputs):
    """Else the program that is printed would be another one than the one that is judged."""
    tokens, _ = inputs.primitives()
    both = "rasp.SequenceMap(lambda x, y: (x, y), same, reads)"
    one, other = (
        inputs.define("same", f"rasp.Map(lambda x: x == {letter!r}, rasp.tokens)", (tokens,), 1.0)
        for letter in "ab"
    )
    reads_other = inputs.define("reads", "rasp.Map(lambda x: not x, same)", (other,), 1.0)
    assert inputs.define("both", both, (one, reads_other), 1.0) is None
    assert inputs.define("same", "rasp.Map(lambda x: not x, same)", (one,), 1.0) is None
    assert inputs.define("both", both, (other, reads_other), 1.0) is not None


def test_the_codes_of_answers_are_the_tasks(histogram):
    sample, inputs = histogram
    tokens, _ = inputs.primitives()
    same = "rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)"
    count = inputs.define("n", f"rasp.SelectorWidth({same})", (tokens,), 2.0)
    np.testing.assert_array_equal(inputs.answers_of(count.values)[count.codes], sample.answers)
    assert (inputs.answers_of(tokens.values)[tokens.codes] == -1).all()
