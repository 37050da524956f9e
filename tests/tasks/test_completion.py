import numpy as np
import pytest

from rasplens.compile import programs
from rasplens.errors import RaspLensError
from rasplens.learned import load_pretrained
from rasplens.model import Config
from rasplens.tasks import get_task, task_from_program
from rasplens.tasks.completion import complete, generated_accuracy, generated_answers, is_generated
from rasplens.tasks.task import NO_ANSWER


def test_each_letter_is_the_likeliest_behind_those_before():
    model = load_pretrained("copy").transformer
    prompts = np.array([[0, 1, 2, 3, 4, 5, 0, 1], [7, 8, 9, 7, 8, 9, 7, 8]])
    written = complete(model, prompts, 12)
    np.testing.assert_array_equal(written[:, :8], prompts)
    for length in range(8, 12):
        np.testing.assert_array_equal(written[:, length], model(written[:, :length])[:, -1].argmax(axis=-1))


def test_what_cannot_be_written_is_refused(random_transformer):
    with pytest.raises(ValueError, match=r"24 positions.*25"):
        complete(load_pretrained("copy").transformer, np.array([[0]]), 25)
    config = Config(n_layers=1, n_heads=1, d_model=4, d_head=4, n_ctx=5, d_vocab=3, d_vocab_out=4)
    with pytest.raises(ValueError, match=r"\d+ logits.*\d+ tokens"):
        complete(random_transformer(config), np.array([[0]]), 3)


@pytest.fixture(scope="module")
def copying():
    return get_task("copy", n_letters=6, block=3, length=9)


def test_a_right_model_writes_the_right_answers(copying):
    program = copying.programs["offset"]
    assert is_generated(copying)
    found = generated_accuracy(copying, lambda ids: copying.answers(program, ids))
    assert found == copying.accuracy(program) == (1.0, 1.0)


def test_a_model_goes_on_from_its_own_mistakes(copying):
    """It repeats the letter one period back, but says the next letter at the first position that is read."""

    def answers(ids):
        back = np.stack([ids[:, position - 2] for position in copying.loss_positions], axis=1)
        back[:, 0] = (back[:, 0] + 1) % 6
        return back

    ids = copying.held_out[:50]
    taught = answers(ids) == copying.target(ids)
    assert taught.mean() == 1 - 1 / len(copying.loss_positions)
    written = generated_answers(copying, answers, ids) == copying.target(ids)
    wrong = [i for i in range(len(copying.loss_positions)) if i % 3 == 0]
    assert not written[:, wrong].any()
    assert written[:, [i for i in range(len(copying.loss_positions)) if i % 3]].all()


def test_what_is_no_next_token_is_not_generated():
    task = task_from_program(programs.histogram(), "abc", 5)
    assert not is_generated(task)
    with pytest.raises(RaspLensError, match=r"'.*next tokens"):
        generated_accuracy(task, task.target)


def test_of_single_errors_whole_answers_are_as_often_right_either_way():
    task, model = get_task("sort"), load_pretrained("sort")
    ids = task.held_out[:300]
    own = generated_accuracy(task, lambda rows: task.answers(model, rows), ids)
    assert own.sequence == task.accuracy(model, ids).sequence
    assert own.token <= task.accuracy(model, ids).token


def test_a_model_without_an_answer_does_not_go_on():
    task = get_task("copy", n_letters=4, block=3, length=9)
    ids = np.array([[0, 1, 2] * 3])
    right = task.target(ids)

    def silent_at(place):
        def answers(rows):
            found = np.repeat(right, len(rows), axis=0)
            found[:, place] = NO_ANSWER
            return found

        return generated_answers(task, answers, ids)

    assert silent_at(0).tolist() == [[NO_ANSWER] * 6]
    assert silent_at(4).tolist() == [[*right[0, :4].tolist(), NO_ANSWER, NO_ANSWER]]


def test_all_at_once_is_one_after_the_other():
    task, model = get_task("copy"), load_pretrained("copy")
    ids, asked_for = task.held_out[:60], []

    def answers(rows):
        asked_for.append(len(rows))
        return task.answers(model, rows)

    found = generated_answers(task, answers, ids)
    written = np.array(ids)
    for i, position in enumerate(task.loss_positions):
        of_all = task.answers(model, written)[:, i]
        np.testing.assert_array_equal(found[:, i], of_all)
        if position + 1 < task.n_ctx:
            written[:, position + 1] = of_all
    assert (found != task.answers(model, ids)).any()
    assert sum(asked_for) < len(ids) * len(task.loss_positions) / 2


def test_a_right_model_is_asked_once(copying):
    program, asked_for = copying.programs["offset"], []

    def answers(rows):
        asked_for.append(len(rows))
        return copying.answers(program, rows)

    generated_answers(copying, answers, copying.held_out)
    assert asked_for == [len(copying.held_out)]
