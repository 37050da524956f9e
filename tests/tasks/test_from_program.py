import numpy as np
import pytest
from rasp_examples import EVERYTHING, HIST, SHIFTED

from rasplens.compile import compile_program, rasp
from rasplens.compile.rasp import Aggregate, LinearSequenceMap, numerical, tokens
from rasplens.tasks import task_from_program


def test_the_interpreter_gives_the_answers():
    task = task_from_program(HIST, ["a", "b", "c"], 5)
    ids = task.draw(np.random.default_rng(0), 20)
    values = [[task.outputs[code] for code in row] for row in task.target(ids)]
    assert values == [HIST(tokens) for tokens in task.sequences(ids)]
    assert task.name == "hist"
    assert task.accuracy(HIST) == (1, 1)
    assert task.accuracy(compile_program(HIST, ["a", "b", "c"], 5)) == (1, 1)


def test_undefined_is_an_answer_of_its_own():
    task = task_from_program(SHIFTED, ["a", "b"], 5, causal=True)
    assert task.outputs[-1] is None
    assert (task.target(task.held_out)[:, 0] == len(task.outputs) - 1).all()
    assert task.accuracy(SHIFTED).token == 1


def test_the_mask_follows_the_mode():
    assert task_from_program(HIST, ["a", "b"], 5).mask(2).all()
    assert not task_from_program(HIST, ["a", "b"], 5, causal=True).mask(2)[:, 0, 1:].any()


def test_held_out_inputs_are_distinct_and_not_sampled():
    task = task_from_program(HIST, ["a", "b", "c"], 4)
    held_out = {tuple(row) for row in task.held_out.tolist()}
    assert len(held_out) == len(task.held_out)
    assert not held_out & {tuple(row) for row in task.sample(np.random.default_rng(1), 500).tolist()}


def test_an_input_space_too_small_to_split_is_refused():
    with pytest.raises(ValueError, match=r"few.*inputs.*\d+ were drawn"):
        task_from_program(HIST, ["a"], 1)


def test_fractions_reached_by_different_sums_are_one_answer():
    """A KeyError once: the interpreter's -0.6666666666666667 against the compiler's -0.6666666666666666."""
    opening, closing = (numerical(Aggregate(EVERYTHING, numerical(tokens == sign))) for sign in "()")
    balance = numerical(LinearSequenceMap(opening, closing, 1, -1)).named("balance")
    task = task_from_program(balance, ["(", ")", "x"], 6, causal=True)
    assert task.accuracy(balance) == (1, 1)
    assert task.accuracy(compile_program(rasp.causal(balance), ["(", ")", "x"], 6, causal=True)) == (1, 1)
