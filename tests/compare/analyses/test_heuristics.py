import pytest

from rasplens.compare.analyses import sorting_heuristics
from rasplens.learned import get_recipe, load_pretrained, untrained
from rasplens.tasks import get_task


def test_the_shipped_sorting_model_has_the_published_heuristics():
    found = sorting_heuristics(load_pretrained("sort").transformer, get_task("sort"))
    assert found.copies == 1.0
    assert found.larger_number > 0.9
    assert found.order > 0.9
    assert found.list_first > 0.9
    assert found.error < 1e-3


def test_an_untrained_model_has_not():
    task = get_task("sort")
    found = sorting_heuristics(untrained(get_recipe("sort", "fast").architecture, task, 3), task)
    assert found.copies < 0.2
    assert found.next_number < 0.2
    assert found.larger_number < 0.8
    assert found.order < 0.9
    assert found.list_first < 0.5
    assert found.error < 1e-3


def test_other_tasks_have_no_such_heuristics():
    with pytest.raises(ValueError, match="'sort'; got 'copy'"):
        sorting_heuristics(load_pretrained("copy").transformer, get_task("copy"))
