import numpy as np
import pytest

from rasplens.compare import as_studied_model
from rasplens.compare.analyses import average_attention
from rasplens.learned import load_pretrained
from rasplens.tasks import get_task


def test_attention_that_depends_on_positions_only_survives_averaging(offset, task):
    averaged = average_attention(as_studied_model(offset, task, task.held_out[:100]))
    assert averaged.clean == averaged.averaged == 1.0
    assert max(averaged.deviation) < 1e-5


def test_attention_that_depends_on_the_input_does_not():
    task = get_task("compression")
    averaged = average_attention(as_studied_model(load_pretrained("compression"), task, task.held_out))
    assert averaged.clean == task.accuracy(load_pretrained("compression")).token
    assert averaged.averaged < averaged.clean - 0.2
    assert max(averaged.deviation) > 0.3


def test_one_input_is_its_own_average(induction, task):
    averaged = average_attention(as_studied_model(induction, task, task.held_out[:1]))
    assert averaged.averaged == averaged.clean
    assert averaged.deviation == pytest.approx(np.zeros(len(averaged.deviation)))
