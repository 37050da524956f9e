"""The whole: a model, and the program that it cannot be told from."""

import json

import numpy as np
import pytest
from small_configs import QUICK

from rasplens.compare import compare, explain
from rasplens.compare.config import get_config
from rasplens.compare.explaining.explain import _on_training_inputs
from rasplens.compile import programs
from rasplens.errors import RaspLensError
from rasplens.learned import Architecture, load_pretrained
from rasplens.learned.initialisation import untrained
from rasplens.model import disguise
from rasplens.tasks import compile_for, get_task, task_from_program


@pytest.fixture(scope="module")
def task():
    return task_from_program(programs.histogram(), "abc", 4)


@pytest.fixture(scope="module")
def found(task):
    twin = disguise(compile_for(task), seed=1, extra_width=2, basis="oblique", condition=10.0)
    return explain(twin, task=task, config=QUICK)


def test_a_disguised_program_is_found_and_its_text_is_what_was_judged(found, task):
    assert found
    best = found.programs[0]
    assert found.nearest is best
    namespace = {}
    exec(best.source, namespace)
    assert (
        compare(namespace["program"], compile_for(task), task=task, config="quick").verdict.answer == "implements"
    )
    assert best.table < best.agreement == 1


def test_it_is_said_in_words_and_as_json(found):
    assert "implements" in str(found)
    assert found.programs[0].source in str(found)
    told = json.loads(found.to_json())
    assert told["programs"][0]["answer"] == "implements"
    assert told["tried"][0]["judged_on"] == "held-out inputs"
    assert not found.not_told_apart


@pytest.mark.slow
def test_what_is_found_at_quick_is_confirmed_at_standard(task):
    """On a disguised `sort_by_frequency`, a program that `standard` refutes passed at `quick`."""
    named = "quick", get_config("quick"), "standard"
    quick, as_config, standard = (explain(compile_for(task), task=task, config=of).programs[0] for of in named)
    assert quick.verdict.claims.equals(standard.verdict.claims)
    assert as_config.verdict.claims.equals(standard.verdict.claims)
    assert not quick.verdict.claims.equals(quick.searching.claims)


@pytest.mark.parametrize("name", ["induction", "sort"])
def test_what_is_held_out_is_kept_for_the_last_verdict(name):
    task = get_task(name)
    searching = _on_training_inputs(task)
    assert len(searching.held_out) == len(task.held_out)
    assert not task.is_held_out(searching.held_out).any()
    others = searching.sample(np.random.default_rng(0), 500)
    assert not (task.is_held_out(others) | searching.is_held_out(others)).any()


@pytest.mark.slow
def test_a_model_that_learned_nothing_has_no_program(task):
    architecture = Architecture(n_layers=1, n_heads=2, d_model=16, d_head=8)
    found = explain(untrained(architecture, task, 0), task=task, config=QUICK, budget=4.0)
    assert not found.programs
    assert "No program was found" in str(found)


@pytest.mark.parametrize("budget", [0.0, -1.0, float("nan")])
def test_a_budget_that_is_none_is_refused(task, budget):
    with pytest.raises(RaspLensError, match="budget must be"):
        explain(compile_for(task), task=task, budget=budget)


def test_a_budget_that_is_used_up_ends_it(task):
    found = explain(compile_for(task), task=task, budget=1e-6)
    assert not found.tried
    assert "budget" in found.ended
    assert found.nearest is None


def test_stages_are_announced(task):
    stages = []
    explain(compile_for(task), task=task, config=QUICK, progress=stages.append)
    assert stages == ["search", "program 1"]


@pytest.mark.slow
def test_the_shipped_induction_model_is_explained():
    found = explain(load_pretrained("induction"), task="induction")
    assert found
    assert "k == q - 1" in found.programs[0].source


@pytest.mark.slow
def test_what_is_found_for_a_rival_is_the_rival_and_not_the_program():
    """The highest token by its rank; not by looking."""
    from circuit_sides import sides

    task, directly, by_rank = sides("highest")
    found = explain(by_rank, task=task)
    for one in found.programs:
        assert compare(one.compiled, directly, task=task, config="quick").verdict.answer != "implements"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sort", "copy"])
def test_models_that_no_program_here_describes_get_none(name):
    assert not explain(load_pretrained(name), task=get_task(name)).programs
