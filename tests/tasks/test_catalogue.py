import pytest

from rasplens.tasks import TASKS, get_task


def test_every_task_is_built_under_its_name():
    for name in TASKS:
        task = get_task(name)
        assert task.name == name
        assert task.programs
        assert len(task.held_out) == 2_000


def test_sizes_can_be_changed():
    assert get_task("copy", n_letters=5, block=2, length=6).n_ctx == 6


def test_an_unknown_task_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'sorting'.* sort, copy, compression"):
        get_task("sorting")
