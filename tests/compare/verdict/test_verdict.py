"""From claims to a verdict."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from subjects import subject

from rasplens.compare.claims.claim import Claim, untestable
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN, UNTESTABLE
from rasplens.compare.verdict.verdict import (
    IMPLEMENTS,
    LEVELS,
    NOT,
    PART,
    PARTLY,
    UNKNOWN,
    Verdict,
    level_answer,
    verdict,
)

SCORES = {HOLDS: 1.0, FAILS: 0.1, OPEN: 0.75}

NO_TEST = "not testable"


def claim(kind, status, name="c", substantial=True, score=None, control=0.0):
    if status == UNTESTABLE:
        return untestable(subject(kind, name), "no pairs")
    score = SCORES[status] if score is None else score
    low, high = max(0.0, score - 0.05), min(1.0, score + 0.05)
    return Claim(subject(kind, name), status, score, low, high, control, 100, substantial, "a reason")


def of_level(kind, answer):
    """Claims that come to an answer."""
    if answer == IMPLEMENTS:
        return [claim(kind, HOLDS)]
    if answer == PARTLY and kind == "answers":
        return [claim(kind, FAILS, score=0.8)]
    return {
        PARTLY: [claim(kind, HOLDS), claim(kind, FAILS)],
        NOT: [claim(kind, FAILS)],
        UNKNOWN: [claim(kind, OPEN)],
        NO_TEST: [claim(kind, UNTESTABLE)],
    }[answer]


def expected(answers, variables, routes):
    """By conjunction: the worst that is said decides, and what is not tested says nothing."""
    if answers == NOT:
        return NOT
    if answers == NO_TEST:
        return UNKNOWN
    mechanism = {variables, routes} - {NO_TEST}
    open_ = PARTLY if answers == PARTLY else UNKNOWN  # whatever is found yet, some answers are others
    table = {
        frozenset(): NOT if answers == PARTLY else UNKNOWN,
        frozenset({IMPLEMENTS}): {IMPLEMENTS: IMPLEMENTS, PARTLY: PARTLY, UNKNOWN: UNKNOWN}[answers],
        frozenset({PARTLY}): PARTLY,
        frozenset({NOT}): NOT,
        frozenset({UNKNOWN}): open_,
        frozenset({IMPLEMENTS, PARTLY}): PARTLY,
        frozenset({IMPLEMENTS, NOT}): PARTLY,
        frozenset({IMPLEMENTS, UNKNOWN}): open_,
        frozenset({PARTLY, NOT}): PARTLY,
        frozenset({PARTLY, UNKNOWN}): PARTLY,
        frozenset({NOT, UNKNOWN}): NOT,
    }
    return table[frozenset(mechanism)]


@pytest.mark.parametrize(
    "levels", list(itertools.product([IMPLEMENTS, PARTLY, NOT, UNKNOWN, NO_TEST], repeat=3)), ids=", ".join
)
def test_every_combination_of_levels(levels):
    claims = [one for kind, answer in zip(LEVELS, levels, strict=True) for one in of_level(kind, answer)]
    found = verdict(claims)
    assert tuple(found.levels[kind] for kind in LEVELS) == levels
    assert found.answer == expected(*levels)
    if found.answer == IMPLEMENTS:
        assert not {claim.status for claim in claims} & {FAILS, OPEN}


def test_a_failed_claim_is_never_paid_for_by_others():
    many = [claim(kind, HOLDS, f"{kind} {i}") for kind in LEVELS for i in range(20)]
    assert verdict(many).answer == IMPLEMENTS
    for kind, status in itertools.product(LEVELS, (FAILS, OPEN)):
        found = verdict([*many, claim(kind, status, "one")])
        assert found.answer != IMPLEMENTS
        assert found.levels[kind] != IMPLEMENTS


def test_what_cannot_be_tested_is_left_out():
    many = [claim(kind, HOLDS) for kind in LEVELS]
    assert verdict([*many, *(claim(kind, UNTESTABLE) for kind in LEVELS)]).answer == IMPLEMENTS


def test_no_change_of_a_claim_for_the_better_makes_the_answer_worse():
    """Of any claims: one that failed and now holds."""
    order = {NOT: 0, PARTLY: 1, UNKNOWN: 1, IMPLEMENTS: 2}
    rng = np.random.default_rng(0)
    for _ in range(200):
        statuses = rng.choice([HOLDS, FAILS, OPEN], size=6).tolist()
        claims = [claim(kind, status) for kind, status in zip([*LEVELS, *LEVELS], statuses, strict=True)]
        better = list(claims)
        worst = int(rng.integers(6))
        better[worst] = claim(claims[worst].level, HOLDS)
        assert order[verdict(better).answer] >= order[verdict(claims).answer]


def test_the_answers_alone_say_nothing_of_the_mechanism():
    right = [claim("answers", HOLDS)]
    found = verdict(right)
    assert found.answer == UNKNOWN
    assert found.levels == {"answers": IMPLEMENTS, "variables": NO_TEST, "routes": NO_TEST}
    assert found.reasons == ("The program claims nothing of variables or routes that these inputs could test.",)
    assert verdict([*right, claim("routes", FAILS), claim("variables", FAILS)]).answer == NOT
    assert verdict([claim("routes", HOLDS), claim("variables", HOLDS)]).answer == UNKNOWN


def test_a_model_whose_answers_are_wrong_implements_nothing():
    """Whatever the other levels say."""
    inside = [claim("variables", HOLDS), claim("routes", HOLDS)]
    assert verdict([claim("answers", FAILS), *inside]).answer == NOT


def test_answers_that_come_most_of_the_way_are_a_part():
    """From an untrained model's, more than half of the way."""
    for control in (0.0, 0.4):
        middle = control + PART * (1 - control)
        for low, answer in ((middle + 0.01, PARTLY), (middle - 0.01, NOT)):
            assert level_answer([claim("answers", FAILS, score=low + 0.05, control=control)]) == answer
    half = [claim("answers", HOLDS), claim("answers", FAILS, score=0.3)]
    assert level_answer(half) == NOT  # all kinds of inputs have to


def test_that_nothing_else_has_an_effect_is_no_part():
    """Many programs share that."""
    assert level_answer([claim("routes", HOLDS, substantial=False), claim("routes", FAILS)]) == NOT
    assert level_answer([claim("routes", HOLDS), claim("routes", FAILS)]) == PARTLY
    assert level_answer([claim("routes", HOLDS, substantial=False)]) == IMPLEMENTS


@pytest.mark.parametrize("level", LEVELS)
def test_a_claim_that_fails_in_one_class_holds_in_part(level):
    """And the class is named."""
    failing = replace(claim(level, FAILS, score=0.1), except_where="position 2 is 'd' (20% of the answers)")
    assert level_answer([failing]) == PARTLY
    assert level_answer([claim(level, FAILS, score=0.1)]) == NOT
    others = [claim(other, HOLDS) for other in LEVELS if other != level]
    found = verdict([failing, *others])
    assert found.answer == PARTLY
    assert any("position 2 is 'd' (20% of the answers)" in reason for reason in found.reasons)
    again = Verdict.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.claims.equals(found.claims)


def test_answers_that_agree_in_part_and_nothing_else_are_said_not_to_do():
    found = verdict([claim("answers", FAILS, score=0.8), claim("variables", UNTESTABLE)])
    assert found.answer == NOT
    assert "agree in part" in found.reasons[0]


def test_the_same_variables_by_other_routes():
    said = "The same variables by other routes."
    same = [claim("answers", HOLDS), claim("variables", HOLDS)]
    for routes in (NOT, PARTLY):
        found = verdict([*same, *of_level("routes", routes)])
        assert found.answer == PARTLY
        assert found.reasons[0] == said
    for routes in (IMPLEMENTS, UNKNOWN, NO_TEST):
        assert said not in verdict([*same, *of_level("routes", routes)]).reasons


def test_reasons_name_what_failed_then_what_is_open_then_what_was_not_tested():
    found = verdict(
        [
            claim("answers", HOLDS),
            claim("variables", UNTESTABLE, "z"),
            claim("variables", OPEN, "y"),
            claim("routes", FAILS, "a", score=0.4),
            claim("routes", FAILS, "b", score=0.2),
        ]
    )
    assert found.reasons == (
        f"routes: {subject('routes', 'b')}: fails (0.20, 0.15 to 0.25; a reason).",
        f"routes: {subject('routes', 'a')}: fails (0.40, 0.35 to 0.45; a reason).",
        "variables: variable y: cannot tell (0.75, 0.70 to 0.80; a reason).",
        "variables: variable z: not testable (no pairs).",
    )
    assert str(found) == "does not (answers: implements, variables: cannot tell, routes: does not)"
    assert verdict([claim(kind, HOLDS) for kind in LEVELS]).reasons == ("All 3 claims that can be tested hold.",)


def test_a_verdict_survives_json():
    """None for NaN, which JSON does not have."""
    found = verdict(
        [
            claim("answers", HOLDS),
            claim("variables", UNTESTABLE, "x"),
            claim("routes", FAILS, control=float("nan")),
        ]
    )
    written = json.dumps(found.to_dict(), allow_nan=False)
    again = Verdict.from_dict(json.loads(written))
    assert json.dumps(again.to_dict(), allow_nan=False) == written
    assert (again.answer, again.levels, again.reasons) == (found.answer, found.levels, found.reasons)
    assert again.claims.equals(found.claims)
    assert np.isnan(again.all_claims[1].score)
    assert np.isnan(again.all_claims[2].control)


def test_variables_and_claims_by_status():
    found = verdict([claim("answers", HOLDS), claim("variables", OPEN, "x"), claim("routes", FAILS, "r")])
    assert found.variables == {"x": OPEN}
    assert [one.subject for one in found.of_status(FAILS)] == [subject("routes", "r")]
    assert found.of_status(UNTESTABLE) == []
    assert found.claims["kind"].tolist() == list(LEVELS)
