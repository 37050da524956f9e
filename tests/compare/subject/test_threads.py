import pytest
import torch

from rasplens.compare import compare
from rasplens.compare.subject.threads import LEAST_WIDTH, few_threads
from rasplens.compile import compile_program, programs
from rasplens.model import HookedModel
from rasplens.tasks import task_from_program

MANY = 3
"""Threads that PyTorch has before."""


@pytest.fixture(autouse=True)
def many_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(MANY)
    yield
    torch.set_num_threads(before)


class Wide:
    """A module from elsewhere: of its width only the config tells."""

    class cfg:  # noqa: N801 - TransformerLens's name
        d_model = LEAST_WIDTH


def test_small_models_get_one_thread_and_give_back_what_was_there():
    small = compile_program(programs.histogram(), "ab", 3)
    for model in (small, small.transformer, HookedModel(small.transformer)):
        with few_threads(model):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == MANY


def test_a_wide_model_keeps_all_threads():
    with few_threads(compile_program(programs.histogram(), "ab", 3), Wide()):
        assert torch.get_num_threads() == MANY


def test_threads_come_back_after_an_error():
    with pytest.raises(RuntimeError, match="stop"), few_threads():
        raise RuntimeError("stop")
    assert torch.get_num_threads() == MANY


def test_every_stage_of_a_comparison_has_one_thread():
    task = task_from_program(programs.histogram(), "abc", 4)
    seen = []
    compare("histogram", compile_program(programs.histogram(), "abc", 4), task=task, config="quick",
            progress=lambda stage: seen.append(torch.get_num_threads()))  # fmt: skip
    assert set(seen) == {1}
    assert len(seen) > 3
    assert torch.get_num_threads() == MANY
