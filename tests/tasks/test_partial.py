"""Tasks that ask only for what a program says."""

import numpy as np
import pytest

from rasplens.compile.rasp import Aggregate, Map, Select, indices, tokens
from rasplens.errors import RaspLensError
from rasplens.tasks import partial_task, task_from_inputs, task_from_program
from rasplens.tasks.task import NOT_ASKED

LETTERS = "abcd"


@pytest.fixture(scope="module")
def task():
    """Of the first letter, the answer is the last one, else the letter itself: a program may know only half."""
    rng = np.random.default_rng(0)
    words = list({tuple(rng.choice(list(LETTERS), 4)) for _ in range(150)})
    answers = [["a" if letter == "a" else word[0] for letter in word] for word in words]
    return task_from_inputs("halves", [list(map(str, word)) for word in words], answers)


FIRST = Aggregate(Select(indices, indices, lambda key, query: key == 0), tokens, default=None)
SAYS_A = Map(lambda letter: "a" if letter == "a" else None, tokens).named("says_a")


def test_only_what_the_program_answers_is_asked(task):
    part = partial_task(task, SAYS_A)
    assert task.accuracy(SAYS_A).token < 0.9
    assert part.accuracy(SAYS_A) == (1.0, 1.0)
    ids = part.sample(np.random.default_rng(0), 100)
    is_a = ids == part.vocab.index("a")
    assert is_a.any(axis=1).all()
    np.testing.assert_array_equal(part.target(ids) != NOT_ASKED, is_a)
    assert is_a.any(axis=1).all()
    assert len(part.held_out) < len(task.held_out)


def test_a_program_that_always_answers_asks_for_everything(task):
    part = partial_task(task, FIRST)
    np.testing.assert_array_equal(part.held_out, task.held_out)
    np.testing.assert_array_equal(part.target(task.held_out), task.target(task.held_out))
    assert part.accuracy(FIRST) == task.accuracy(FIRST)


@pytest.mark.parametrize("says", [{"a"}, set()])
def test_none_is_no_answer_of_a_part_though_the_task_has_it(says):
    """A task from a program has None among its answers, for what is undefined."""
    whole = task_from_program(FIRST.named("first"), LETTERS, 4)
    assert None in whole.outputs
    some = Map(lambda letter: letter if letter in says else None, FIRST).named("some")
    if not says:
        with pytest.raises(RaspLensError, match="held-out"):
            partial_task(whole, some)
        return
    part = partial_task(whole, some)
    assert part.accuracy(some) == (1.0, 1.0)
    assert part.accuracy(FIRST) == (1.0, 1.0)
    assert (part.held_out[:, 0] == whole.vocab.index("a")).all()


def test_a_program_without_answers_is_refused(task):
    with pytest.raises(RaspLensError, match=r"held-out.*'halves'"):
        partial_task(task, Map(lambda letter: None, tokens))
