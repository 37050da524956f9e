from dataclasses import replace

import pytest

from rasplens.compare import as_studied_model
from rasplens.compare.analyses import position_separability
from rasplens.learned import Architecture

SIZES = Architecture(n_layers=1, n_heads=1, d_model=12, d_head=6)


def test_learned_positions_are_told_apart_and_shuffled_labels_are_not(noise, task):
    found = position_separability(as_studied_model(noise, task, task.held_out[:300]))
    start = found[found["point"] == "blocks.0.hook_resid_pre"]
    n = len(task.loss_positions)
    assert len(start) == n * (n - 1) // 2
    assert start["auc"].mean() > 0.9
    assert abs(start["shuffled"].mean() - 0.5) < 0.1


def test_without_positions_the_same_letters_are_not_told_apart(random_transformer, task):
    model = random_transformer(replace(SIZES, positions="none").config(task))
    found = position_separability(as_studied_model(model, task, task.held_out[:300]))
    assert abs(found[found["point"] == "blocks.0.hook_resid_pre"]["auc"].mean() - 0.5) < 0.1


def test_streams_that_are_the_same_on_every_input_are_told_apart(random_transformer):
    """The output positions of the compression task hold constants before attention."""
    from rasplens.tasks import get_task

    task = get_task("compression", n_digits=10)
    model = random_transformer(replace(SIZES, d_head=12).config(task), mask=task.mask(1))
    found = position_separability(as_studied_model(model, task, task.held_out))
    first = found.iloc[0]
    assert first["auc"] == first["accuracy"] == 1.0
    assert 0.2 < first["shuffled"] < 0.8


def test_too_few_inputs_are_refused(noise, task):
    with pytest.raises(ValueError, match=r"10 inputs.*got 9"):
        position_separability(as_studied_model(noise, task, task.held_out[:9]))
