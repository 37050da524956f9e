"""The claim on a variable, from its interchange."""

from dataclasses import replace

import numpy as np
import pytest
from known_interchanges import known_interchange
from known_trials import inputs_of, known_trials

from rasplens.compare import CompareConfig
from rasplens.compare.claims.trials.judging import AT_MOST, FAILS, HOLDS, OPEN, UNTESTABLE
from rasplens.compare.claims.variables import judged_interchange

RIGHT = [1.0] * 100
INPUTS = inputs_of(np.zeros((1, 4), dtype=int))


CONFIG = CompareConfig(interchange_pairs=100)


def variable(one, more=lambda n: [], config=CONFIG):
    return judged_interchange(one, INPUTS, np.random.default_rng(0), config, more)


def test_a_variable_that_fails_names_an_answer_that_is_not_the_programs():
    """Base and source, what the program says and what the model, in this order."""
    inputs = inputs_of(np.array([[0, 0, 0, 0], [1, 0, 0, 1]]))
    wrong = known_interchange("x", [0.0] * 100, RIGHT, chosen=0.1)
    pairs = replace(wrong.pairs, source=np.ones(100, dtype=int), expected=np.tile([0, 1], (100, 1)))
    given = replace(wrong.accuracy, given=np.ones((100, 2), dtype=int))
    one = replace(wrong, pairs=pairs, accuracy=given)
    found = judged_interchange(one, inputs, np.random.default_rng(0), CONFIG, lambda n: [])
    base, source = inputs.tokens(0), inputs.tokens(1)
    places = [str(inputs.task.positions[at]) for at in np.flatnonzero(pairs.intervened[0])]
    first, ours, theirs = (
        inputs.task.positions[inputs.task.loss_positions[0]], *map(inputs.task.answer_name, (0, 1)),
    )  # fmt: skip
    assert found.counterexample == (
        f"on {base!r} with x of {source!r} at position {', '.join(places)} the program answers {ours} at {first}, "
        f"the model {theirs}"
    ).replace("at position ", "at positions " if len(places) > 1 else "at position ")
    assert not variable(known_interchange("x", RIGHT, RIGHT)).counterexample
    by_a_dormant_path = known_interchange("x", RIGHT, RIGHT, active=[0.0] * 100, chosen=0.1)
    assert not variable(by_a_dormant_path).counterexample  # the answers themselves are the program's


def test_a_variable_holds_where_what_changes_changes_and_the_rest_stays():
    assert variable(known_interchange("x", RIGHT, RIGHT)).status == HOLDS
    wrong = [0.0] * 100
    for one in (
        known_interchange("x", wrong, RIGHT, chosen=0.1),
        known_interchange("x", RIGHT, wrong, chosen=0.1),
        known_interchange("x", RIGHT, RIGHT, active=wrong, chosen=0.1),  # by a dormant path
    ):
        assert variable(one).status == FAILS
    whole = known_interchange("x", RIGHT, RIGHT, active=wrong, method="component")
    assert variable(whole).status == HOLDS  # a whole component takes every path


def test_a_search_that_overfits_cannot_tell():
    """It reaches much on its own pairs, and nothing on others."""
    wrong = [0.0] * 100
    found = variable(known_interchange("x", wrong, RIGHT, chosen=0.9))
    assert found.status == OPEN
    assert "0.90 on its own pairs, 0.00 on others" in found.reason
    assert variable(known_interchange("x", wrong, RIGHT, chosen=0.3)).status == FAILS


def test_a_claim_fails_by_its_interval_and_not_by_the_search_alone():
    """0.71, up to 0.76: the search did badly on its own pairs, and the claim may hold all the same."""
    found = variable(known_interchange("x", [1.0] * 71 + [0.0] * 29, RIGHT, chosen=0.3))
    assert found.high >= AT_MOST
    assert found.status == OPEN


def test_where_the_search_finds_nothing_in_the_compiled_model_either_nothing_is_tested():
    found = variable(known_interchange("x", [0.0] * 100, RIGHT, chosen=0.1, ceiling=0.5))
    assert found.status == UNTESTABLE
    assert "not even in the compiled model (0.50)" in found.reason
    half = [1.0] * 78 + [0.0] * 22
    assert (
        variable(known_interchange("x", half, RIGHT, ceiling=0.78)).status == UNTESTABLE
    )  # as far, and no further
    assert variable(known_interchange("x", half, RIGHT, ceiling=0.95)).status == OPEN


@pytest.mark.parametrize("controls", [{"random": 0.9}, {"untrained": 0.9}])
def test_where_a_control_does_as_well_nothing_is_tested(controls):
    found = variable(known_interchange("x", RIGHT, RIGHT, **controls))
    assert found.status == UNTESTABLE
    assert "a control does as well (0.90)" in found.reason
    less = dict.fromkeys(controls, 0.7)
    assert variable(known_interchange("x", RIGHT, RIGHT, **less)).status == HOLDS


def test_few_pairs_are_no_test():
    assert variable(known_interchange("x", [1.0] * 10, [1.0] * 10)).status == UNTESTABLE


def test_where_some_trials_fail_others_are_asked():
    """One failure in a hundred says of no class; three hundred trials may."""
    asked = []

    def more(n):
        asked.append(n)
        return [replace(known_trials(np.arange(n) >= n // 10), source=np.zeros(n, dtype=int))] * 2

    found = variable(known_interchange("x", [1.0] * 99 + [0.0], RIGHT), more)
    assert found.status == HOLDS
    assert asked == [200]
    assert len(found.trials[0]) == 300
    assert found.trials[0].stopped
    clear = variable(known_interchange("x", RIGHT, RIGHT), more)
    assert asked == [200]
    assert len(clear.trials[0]) == 100


def test_few_pairs_are_all_that_there_are():
    def none_left(n):
        raise AssertionError("no more are asked for")

    one = known_interchange("x", [1.0] * 99 + [0.0], RIGHT)
    found = variable(one, none_left, CompareConfig(interchange_pairs=150))
    assert len(found.trials[0]) == 100
    assert not found.trials[0].stopped


def test_where_there_are_no_other_pairs_those_that_there_are_judge():
    found = variable(known_interchange("x", [1.0] * 99 + [0.0], RIGHT))
    assert (found.status, len(found.trials[0])) == (HOLDS, 100)
