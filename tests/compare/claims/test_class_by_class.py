"""Claims judged class by class."""

from dataclasses import replace

import numpy as np
import pytest
from known_trials import inputs_of
from subjects import subject

from rasplens.compare.claims.attention import AttendsLike
from rasplens.compare.claims.claim import SearchedAnew, judged_by_trials, untestable
from rasplens.compare.claims.class_by_class import class_by_class, failing_class
from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN

IDS = np.random.default_rng(0).integers(0, 4, (300, 4))
D_AT_2 = IDS[:, 2] == 3


def trials(right):
    nothing = np.zeros(300, dtype=int)
    return Trials(inputs_of(IDS), np.asarray(right), np.arange(300), nothing)


def anew(share):
    """Trials that are all of the class, of which a share comes out as claimed."""
    rows = np.flatnonzero(D_AT_2)
    base = np.resize(rows, 300)
    return replace(trials(np.arange(300) < share * 300), base=base)


def claim(*rights, of=None):
    parts = [trials(right) for right in rights]
    return judged_by_trials(of or subject("routes"), parts, 0.1, True, "patched", 1)


def test_a_claim_that_holds_on_average_fails_in_a_class():
    whole = claim(~D_AT_2)
    assert whole.status in (HOLDS, OPEN)
    (found,) = class_by_class([whole], 1)
    assert found.status == FAILS
    assert found.except_where.startswith("position 2 is 'd' (")
    assert (found.score, found.n) == (0.0, D_AT_2.sum())
    assert found.high < 0.65
    assert "elsewhere 1.00" in found.reason
    assert found.trials == ()


def test_a_claim_that_fails_everywhere_is_not_said_to_fail_in_a_class():
    right = ~D_AT_2 & (np.arange(300) % 2 == 0)
    (found,) = class_by_class([claim(right)], 1)
    assert (found.status, found.except_where) == (FAILS, "")


def test_a_class_in_which_a_claim_does_worse_but_well_enough_changes_nothing():
    right = ~D_AT_2 | (np.random.default_rng(2).random(300) < 0.8)
    whole = replace(claim(right), again=lambda found: [anew(0.72)])
    (found,) = class_by_class([whole], 1)
    assert (found.status, found.score, found.reason) == (HOLDS, whole.score, whole.reason)


def test_a_class_in_which_a_claim_may_fail_leaves_it_open():
    right = ~D_AT_2 | (np.random.default_rng(2).random(300) < 0.7)
    whole = replace(claim(right), again=lambda found: [anew(0.64)])
    assert whole.status == HOLDS
    (found,) = class_by_class([whole], 1)
    assert (found.status, found.except_where) == (OPEN, "")
    assert "position 2 is 'd'" in found.reason


def test_a_class_is_judged_by_trials_that_did_not_find_it():
    whole = replace(claim(~D_AT_2), again=lambda found: [anew(0.4)])
    (found,) = class_by_class([whole], 1)
    assert (found.status, found.score, found.n) == (FAILS, 0.4, 300)
    too_few = replace(claim(~D_AT_2), again=lambda found: [anew(0.4).of(slice(5))])
    assert class_by_class([too_few], 1)[0].status == whole.status


FEW_OF_CLASS = np.flatnonzero(D_AT_2)[:3]


@pytest.mark.parametrize(("share", "status"), [(0.1, FAILS), (0.7, HOLDS), (1.0, HOLDS)])
def test_a_suspected_class_is_judged_by_other_trials_alone(share, status):
    """Three failures of three: by chance, or because the claim fails there."""
    rows = ~D_AT_2 | np.isin(np.arange(300), FEW_OF_CLASS)
    part = trials(~np.isin(np.arange(300), FEW_OF_CLASS)).of(rows)
    whole = judged_by_trials(subject("routes"), [part], 0.1, True, "patched", 1)
    (found,) = class_by_class([replace(whole, again=lambda _: [anew(share)])], 1)
    assert found.status == status
    assert bool(found.except_where) == (status == FAILS)
    (alone,) = class_by_class([whole], 1)
    assert (alone.status, alone.except_where) == (HOLDS, "")


def test_a_suspected_class_that_cannot_be_asked_about_anew_refutes_nothing():
    """The trials that chose it do not judge it, though all of the five in it failed."""
    five = np.flatnonzero(D_AT_2)[:5]
    part = trials(~np.isin(np.arange(300), five)).of(~D_AT_2 | np.isin(np.arange(300), five))
    whole = judged_by_trials(subject("routes"), [part], 0.1, True, "patched", 1)
    (found,) = class_by_class([replace(whole, again=lambda _: [])], 1)
    assert (found.status, found.except_where) == (HOLDS, "")


def test_all_other_parts_have_to_hold_as_well():
    half = np.arange(300) % 2 == 0
    (found,) = class_by_class([claim(~D_AT_2, half)], 1)
    assert found.except_where == ""
    (found,) = class_by_class([claim(~D_AT_2, np.ones(300, dtype=bool))], 1)
    assert found.except_where


def test_a_claim_is_asked_in_the_classes_that_other_claims_show():
    """Four failures show nothing by themselves, and something where another claim fails on the same inputs."""
    few = np.flatnonzero(D_AT_2)[:9]
    rows = ~D_AT_2 | np.isin(np.arange(300), few)
    part = trials(~np.isin(np.arange(300), few[:8])).of(rows)
    small = judged_by_trials(subject("routes"), [part], 0.1, True, "patched", 1)
    other = claim(~D_AT_2)
    alone, together = class_by_class([small], 1)[0], class_by_class([small, other], 1)
    assert together[1].except_where
    assert together[0].except_where
    assert alone.except_where in ("", together[0].except_where)


def test_what_cannot_fail_is_left_open():
    subject_ = AttendsLike((0, 0), "x", ((0, 1),))
    (found,) = class_by_class([claim(~D_AT_2, of=subject_)], 1)
    assert found.status == OPEN
    assert "position 2 is 'd'" in found.reason


def test_what_was_not_tested_stays_so():
    none = untestable(subject("routes"), "why")
    assert class_by_class([none], 1) == [none]


@pytest.mark.parametrize("comparisons", [1, 10])
def test_the_class_fails_by_its_own_interval(comparisons):
    found = failing_class(trials(~D_AT_2), comparisons)
    assert found.inside.n + found.elsewhere.n == 300
    assert found.inside.score == 0
    assert failing_class(trials(np.ones(300, dtype=bool)), comparisons) is None
    every = replace(trials(~D_AT_2), right=np.zeros(300, dtype=bool))
    assert failing_class(every, comparisons) is None


def by_search(learned, compiled):
    """The claim that fails where position 2 is "d", with the shares that a search reaches there."""
    anew_there = SearchedAnew([anew(learned)], [anew(compiled)])
    whole = replace(claim(~D_AT_2), again=lambda found: [anew(0.2)], searched=lambda found: anew_there)
    (found,) = class_by_class([whole], 1)
    assert found.searched is None
    return whole, found


def test_what_no_search_finds_in_a_class_fails_there():
    _, found = by_search(learned=0.2, compiled=1.0)
    assert found.status == FAILS
    assert found.except_where.startswith("position 2 is 'd' (")


def test_where_another_search_does_as_claimed_the_first_may_be_at_fault():
    _, found = by_search(learned=0.95, compiled=1.0)
    assert (found.status, found.except_where) == (OPEN, "")
    assert "at another site" in found.reason


def test_a_search_that_errs_in_the_compiled_model_says_nothing_of_a_class():
    whole, found = by_search(learned=0.2, compiled=0.6)
    assert (found.status, found.score, found.reason) == (whole.status, whole.score, whole.reason)


def test_a_class_of_hardly_any_answers_does_not_judge():
    """However clear it is in the trials: on inputs as the task draws them it hardly occurs."""
    rare = IDS.copy()
    rare[:, 2] %= 3  # drawn without a "d" at position 2
    drawn = replace(inputs_of(np.concatenate([rare, IDS])), n_drawn=len(rare))
    nothing = np.zeros(300, dtype=int)
    part = Trials(drawn, ~D_AT_2, np.arange(300, 600), nothing)
    whole = judged_by_trials(subject("routes"), [part], 0.1, True, "patched", 1)
    whole = replace(whole, again=lambda found: [part.of(D_AT_2)])
    (found,) = class_by_class([whole], 1)
    assert (found.status, found.except_where) == (whole.status, "")


def test_a_class_is_found_in_more_trials_than_a_claim_is_judged_by():
    """All pairs were asked, and those that fail are of a class; of the few trials hardly any was."""
    few = trials(~D_AT_2).of(np.concatenate([np.flatnonzero(~D_AT_2)[:150], FEW_OF_CLASS[:1]]))
    whole = judged_by_trials(subject("routes"), [few], 0.1, True, "patched", 1)
    assert whole.status == HOLDS
    asked_anew = replace(whole, again=lambda found: [anew(0.4)])
    assert class_by_class([asked_anew], 1)[0].status == HOLDS  # the negative control: nothing points to the class
    (found,) = class_by_class([replace(asked_anew, others=(trials(~D_AT_2),))], 1)
    assert (found.status, found.score) == (FAILS, 0.4)
    assert found.except_where.startswith("position 2 is 'd' (")
    assert found.others == ()
