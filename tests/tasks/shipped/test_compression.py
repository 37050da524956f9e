import numpy as np
import torch

from rasplens.tasks import get_task


def test_the_published_layout():
    task = get_task("compression")
    assert (task.n_ctx, len(task.vocab), len(task.outputs)) == (5, 102, 102)
    assert task.vocab[100:] == ("MASK", "SEP")
    np.testing.assert_array_equal(task.held_out[0, 2:], [101, 100, 100])
    np.testing.assert_array_equal(task.target(task.held_out), task.held_out[:, :2])


def test_the_notebooks_layout():
    task = get_task("compression_notebook")
    assert len(task.vocab) == 101
    np.testing.assert_array_equal(task.held_out[0, 2:], [100, 100, 100])


def test_the_masks():
    """Rows are d1, d2, SEP, o1, o2; the published variant silences the outputs in layer 0."""
    below = np.array([[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0]])
    silent = below.copy()
    silent[3:] = 0
    np.testing.assert_array_equal(get_task("compression").mask(3), [silent, below, below])
    np.testing.assert_array_equal(get_task("compression_notebook").mask(2), [below, below])


def test_the_split_is_the_authors():
    task = get_task("compression")
    order = torch.randperm(10_000, generator=torch.Generator().manual_seed(0)).numpy()
    expected = {(int(i) // 100, int(i) % 100) for i in order[8_000:]}
    assert {tuple(row) for row in task.held_out[:, :2].tolist()} == expected
    assert (order[0] // 100, order[0] % 100) == (60, 44)  # the first training input that their notebook prints


def test_the_reference_program_is_right_on_both_layouts():
    for name in ("compression", "compression_notebook"):
        task = get_task(name)
        assert task.accuracy(task.programs["slots"], task.held_out[:300]) == (1, 1)
