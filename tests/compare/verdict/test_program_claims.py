"""The claims of a program, and what the evidence says of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from known_interchanges import known_interchange

from rasplens.compare import CompareConfig, discriminate, pair
from rasplens.compare.evidence.behaviour import OUT_OF_DISTRIBUTION, Behaviour
from rasplens.compare.evidence.collection import CausalTests, causal_tests
from rasplens.compare.verdict.claims import FAILS, HOLDS, OPEN, UNTESTABLE
from rasplens.compare.verdict.program_claims import _variable, program_claims

FEW = CompareConfig(
    n_inputs=96,
    n_fitting=200,
    relevance_inputs=24,
    questions=60,
    questions_tried=900,
    interchange_pairs=50,
    das_steps=0,
    random_subspaces=2,
)

RIGHT = [1.0] * 100

COLUMNS = ["inputs", "n", "agreement", "untrained", "right", "undefined", "exhaustive"]


def claims_of(compiled, model, alternative, task):
    pairing = pair(compiled, model, task, FEW, 0)
    distinguishing = discriminate(compiled.program, alternative.program, task)
    found = causal_tests(pairing, {alternative.output: distinguishing}, 0)
    return pairing, found, {one.claim: one for one in program_claims(pairing, found, 0)}


@pytest.fixture(scope="module")
def own(induction, offset, task):
    return claims_of(induction, induction, offset, task)


def test_all_claims_of_a_compiled_model_against_itself_hold(own):
    claims = own[2]
    assert {one.status for one in claims.values()} == {HOLDS}
    assert {one.kind for one in claims.values()} == {"answers", "variables", "routes"}
    assert "variable previous" in claims
    assert {name for name, one in claims.items() if not one.substantial} == {
        "answers, each of them",
        "nothing is gathered along other edges",
    }
    assert not any(OUT_OF_DISTRIBUTION in name for name in claims)  # what happens there decides nothing


def test_noise_answers_otherwise_and_is_asked_no_more(induction, noise, offset, task):
    claims = claims_of(induction, noise, offset, task)[2]
    assert {one.status for one in claims.values() if one.kind == "answers"} == {FAILS}
    assert {one.status for one in claims.values() if one.kind != "answers"} == {UNTESTABLE}


def test_claims_are_the_seeds(own):
    pairing, found, claims = own
    assert [repr(one) for one in program_claims(pairing, found, 0)] == [repr(one) for one in claims.values()]


def answers(pairing, agree, n, exhaustive):
    trials = np.arange(n) < agree
    table = pd.DataFrame(
        [("held out", n, agree / n, 0.1, 1.0, 0.0, exhaustive)],
        columns=COLUMNS,
    )
    behaved = Behaviour(table, {"held out": trials}, {}, np.ones((2, n)))
    return program_claims(pairing, CausalTests({}, [], [], ([], "no routes"), [], behaved), 0)[0]


@pytest.mark.parametrize(
    ("agree", "n", "exhaustive", "status"),
    [
        (1000, 1000, False, HOLDS),
        (950, 1000, False, HOLDS),
        (945, 1000, False, OPEN),
        (900, 1000, False, FAILS),
        (20, 20, False, OPEN),  # too few to say
        (20, 20, True, HOLDS),  # there are no others
        (19, 20, True, HOLDS),
        (18, 20, True, FAILS),
        (18, 20, False, OPEN),
        (0, 1, False, OPEN),  # bad luck, perhaps
        (1, 2, False, OPEN),
        (0, 2, False, FAILS),
        (2, 4, False, FAILS),
    ],
)
def test_answers_have_to_agree_and_there_have_to_be_enough(own, agree, n, exhaustive, status):
    one = answers(own[0], agree, n, exhaustive)
    assert (one.kind, one.claim, one.status) == ("answers", "answers, held out", status)
    assert (one.score, one.control, one.n) == (agree / n, 0.1, n)
    assert (one.low == one.score == one.high) == exhaustive


def each_answer(pairing, by_answer):
    """The claim on each answer by itself, from how often it is given where it is due: `{code: (agree, n)}`."""
    trials = {code: np.arange(n) < agree for code, (agree, n) in by_answer.items()}
    table = pd.DataFrame([("held out", 200, 1.0, 0.1, 1.0, 0.0, False)], columns=COLUMNS)
    behaved = Behaviour(table, {"held out": np.ones(200, dtype=bool)}, trials, np.ones((2, 200)))
    found = program_claims(pairing, CausalTests({}, [], [], ([], "no routes"), [], behaved), 0)
    return {one.claim: one for one in found}.get("answers, each of them")


@pytest.mark.parametrize(
    ("rare", "status"),
    [((12, 12), HOLDS), ((11, 12), HOLDS), ((9, 12), OPEN), ((2, 12), FAILS), ((1, 1), HOLDS), ((0, 2), FAILS)],
)
def test_each_answer_has_to_be_given_where_it_is_due(own, rare, status):
    one = each_answer(own[0], {0: (190, 190), 1: rare})
    assert one.status == status
    assert not one.substantial
    if status != HOLDS:
        assert one.score == rare[0] / rare[1]
        assert repr(own[0].task.outputs[1]) in one.reason


def test_one_answer_alone_is_not_asked_for_by_itself(own):
    assert each_answer(own[0], {0: (190, 190)}) is None


def variable(one):
    return _variable(one, np.random.default_rng(0), 1)


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


def test_routes_that_cannot_be_asked_say_why(own):
    pairing, found, _ = own
    none = replace(found, routes=([], "no hook point"), interchanged=[])
    claims = {one.claim: one for one in program_claims(pairing, none, 0)}
    assert (claims["routes"].status, claims["routes"].reason) == (UNTESTABLE, "no hook point")
    assert claims["variable previous"].status == UNTESTABLE
