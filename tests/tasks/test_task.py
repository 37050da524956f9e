from dataclasses import replace

import numpy as np
import pytest

from rasplens.tasks import Accuracy, get_task


@pytest.fixture(scope="module")
def task():
    return get_task("sort", n_values=4, length=3)


def test_held_out_inputs_are_never_sampled(task):
    sampled = {tuple(row) for row in task.sample(np.random.default_rng(0), 2_000).tolist()}
    held_out = {tuple(row) for row in task.held_out.tolist()}
    assert len(sampled) > 40
    assert held_out
    assert not sampled & held_out
    drawn = {tuple(row) for row in task.draw(np.random.default_rng(0), 2_000).tolist()}
    assert drawn & held_out  # without the rejection they would be


def test_samples_are_reproducible(task):
    first, second = (task.sample(np.random.default_rng(5), 10) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_ids_and_tokens_translate_both_ways(task):
    sequence = ["BOS", 3, 0, 1, "MID", 0, 1, 3]
    ids = task.ids([sequence])
    np.testing.assert_array_equal(ids, [[4, 3, 0, 1, 5, 0, 1, 3]])
    assert task.sequences(ids) == [sequence]
    assert task.token_names == ("0", "1", "2", "3", "BOS", "MID")


def test_inputs_that_do_not_fit_are_refused(task):
    with pytest.raises(ValueError, match=r"'sort'.* 8 tokens.* 2"):
        task.ids([["BOS", 1]])
    with pytest.raises(ValueError, match=r" 9 .*vocabulary of 'sort'"):
        task.ids([["BOS", 9, 0, 1, "MID", 0, 1, 9]])


def test_accuracy_counts_tokens_and_whole_sequences(task):
    class Wrong:
        """Right but for one answer on every other input."""

        def __call__(self, ids):
            import torch

            logits = np.zeros((*ids.shape, 4))
            answers = task.target(ids.numpy()).copy()
            answers[::2, 0] = (answers[::2, 0] + 1) % 4
            logits[:, list(task.loss_positions)] = np.eye(4)[answers]
            return torch.tensor(logits)

    ids = task.held_out[:10]
    assert task.accuracy(Wrong(), ids) == Accuracy(token=1 - 0.5 / 3, sequence=0.5)


def test_the_union_of_the_masks_is_what_a_program_may_see():
    task = get_task("compression")
    np.testing.assert_array_equal(task.visible, task.mask(3)[1])
    assert not task.mask(2)[0, 3:].any()


def test_impossible_tasks_are_refused(task):
    with pytest.raises(ValueError, match=r"[Ll]oss positions \[8\].* 8 positions"):
        replace(task, loss_positions=(7, 8))
    with pytest.raises(ValueError, match="`is_held_out`"):
        replace(task, is_held_out=lambda ids: np.zeros(len(ids), dtype=bool))


def test_the_next_token_can_be_the_answer_everywhere():
    everywhere = get_task("copy", n_letters=5, block=2, length=6).next_token()
    ids = everywhere.held_out[:5]
    np.testing.assert_array_equal(everywhere.target(ids), ids[:, 1:])
    assert everywhere.loss_positions == (0, 1, 2, 3, 4)
    assert not everywhere.programs  # none is right where nothing determines the letter


def test_answers_that_are_no_tokens_have_no_next_token():
    with pytest.raises(ValueError, match=r"'compression'.*next tokens"):
        get_task("compression").next_token()


def test_a_notebook_shows_the_layout_and_three_inputs_with_their_answers():
    task = get_task("sort", n_values=6, length=3)
    shown = task._repr_html_()
    assert shown.count("<td>input</td>") == shown.count("<td>answer</td>") == 3
    assert "<td>position</td><td>BOS</td><td>a1</td>" in shown
    answers = "".join(f"<td>{task.outputs[code]}</td>" for code in task.target(task.held_out[:1])[0])
    assert answers in shown
    assert "8 positions, 8 tokens, 6 answers at 3 positions" in repr(task)


@pytest.mark.parametrize("name", ["vocab", "outputs"])
@pytest.mark.usefixtures("unchecked")
def test_tokens_and_answers_are_values_in_a_sequence(task, name):
    with pytest.raises(ValueError, match=f"{name} of a task.*tuple.*int 5"):
        replace(task, **{name: 5})
    with pytest.raises(ValueError, match=r"'sort'.*surrogates"):
        replace(task, **{name: ("\ud800", *getattr(task, name)[1:])})
