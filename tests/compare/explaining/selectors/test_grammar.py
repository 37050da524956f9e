"""Selectors that a head may have."""

import numpy as np
import pytest
from explaining_samples import sample_of

from rasplens.compare.explaining.selectors.grammar import best_of, selects, unlike
from rasplens.compare.explaining.selectors.tables import Observed
from rasplens.compile import programs, rasp
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter


def uniform(inputs):
    return np.tile(inputs.task.visible / inputs.task.visible.sum(axis=1, keepdims=True), (len(inputs.ids), 1, 1))


def every(inputs, known, observed):
    """All selectors: of all keys, and of the best of them."""
    whole = selects(inputs, known, observed, None)
    return unlike([*whole, *(best for one in whole for best in best_of(known, one))], observed.rows)


def known_of(inputs):
    """Tokens, positions, a count, and what is gathered from the position before."""
    tokens, indices = inputs.primitives()
    same = "rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)"
    count = inputs.define("count", f"rasp.SelectorWidth({same})", (tokens,), 2.0)
    before = "rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1)"
    gathered = f"rasp.Aggregate({before}, rasp.tokens, default='nothing')"
    last = inputs.define("last", gathered, (indices, tokens), 1.0)
    return [tokens, indices, count, last]


@pytest.mark.parametrize(
    ("program", "vocab", "causal"),
    [
        (programs.histogram(), "abc", False),
        (programs.histogram(), "ab", True),
        (programs.histogram(), ("{", "}", "'"), False),
        (programs.next_larger(), (1, 2, 3, 4), False),
    ],
)
def test_the_text_of_a_selector_selects_what_its_matrix_says(program, vocab, causal):
    """By the interpreter, which knows nothing of tables."""
    _, inputs = sample_of(program, vocab, 4, causal)
    known = known_of(inputs)
    attention = np.random.default_rng(0).random(uniform(inputs).shape) * inputs.task.visible
    found = every(inputs, known, Observed("h", range(4), attention, None, ()))
    assert len(found) > 100
    for one in found[:: max(1, len(found) // 150)]:
        namespace = {"rasp": rasp, **{read.name: read.expr for read in one.reads}}
        width = rasp.SelectorWidth(eval(one.text, namespace))
        selections, fails = BatchInterpreter(width, inputs.task.vocab, inputs.task.visible).selections(inputs.ids)
        matrix = next(matrix for expr, matrix in selections if expr is width)
        assert not fails.any(), one.text
        np.testing.assert_array_equal(matrix, one.matrix, err_msg=one.text)


def test_what_looks_alike_is_one_candidate_and_the_shortest(histogram):
    _, inputs = histogram
    found = every(inputs, inputs.primitives(), Observed("h", range(4), uniform(inputs), None, ()))
    matrices = {one.matrix.tobytes() for one in found}
    assert len(matrices) == len(found)
    same = next(one for one in found if one.text == "rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == q)")
    assert same.cost == 2


def test_rows_that_do_not_matter_tell_nothing_apart(histogram):
    _, inputs = histogram
    known = inputs.primitives()
    assert len(every(inputs, known, Observed("h", [0], uniform(inputs), None, ()))) < len(
        every(inputs, known, Observed("h", range(4), uniform(inputs), None, ()))
    )
