"""The verdict on a part of a model."""

import numpy as np
import pytest

from rasplens.compare import CompareConfig, Comparison, compare
from rasplens.compare.claims.edges.questions import Keys, OtherEdges
from rasplens.compare.claims.effects.effect import Effect
from rasplens.compare.claims.effects.part import GivesAnswers, Judged, claim_of
from rasplens.compare.claims.effects.part_tests import EffectTest
from rasplens.compare.claims.effects.subjects import Sufficient
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, IN_PART, OPEN, UNTESTABLE
from rasplens.compare.report.page import render
from rasplens.compare.verdict.headline import headline
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY, level_answer
from rasplens.model.twins.heads import insert_idle_heads

FEW = CompareConfig(n_inputs=150, n_fitting=50, questions=120, enumerated=0)


KEYS = Keys()


def judged(share, spread, control=0.1, n=100, subject=KEYS, substantial=True):
    """A claim on trials whose shares lie around one."""
    rng = np.random.default_rng(0)
    effect = Effect(share + spread * rng.normal(size=n), np.ones(n))
    test = EffectTest(subject, (effect,), control, "patched", substantial)
    return claim_of(Judged(test, {"changed": effect.interval(400, rng)} if n > 12 else {}), needed=12)


def test_a_claim_holds_wholly_in_part_or_not_at_all():
    assert judged(0.95, 0.1).status == HOLDS
    assert judged(0.5, 0.1).status == IN_PART
    assert judged(0.02, 0.1).status == FAILS
    assert judged(0.76, 1.0).status == OPEN


def test_what_the_control_reaches_as_well_is_nothing():
    assert judged(0.5, 0.1, control=0.6).status == FAILS
    assert judged(0.95, 0.1, control=0.95).status == OPEN
    assert judged(0.95, 0.1, control=0.99).status == FAILS
    assert judged(0.95, 0.1, control=float("nan")).status == HOLDS  # of two answers there is no other


def test_which_heads_are_at_work_refutes_nothing():
    heads = Sufficient(((0, 0),))
    assert judged(0.0, 0.1, subject=heads, substantial=False).status == UNTESTABLE
    assert judged(0.65, 0.1, subject=heads, substantial=False).status == HOLDS


def test_few_trials_say_nothing():
    assert judged(0.95, 0.1, n=5).status == UNTESTABLE
    nothing = claim_of(Judged(EffectTest(Keys(), (), float("nan"), "no pair"), {}), needed=12)
    assert (nothing.status, nothing.reason) == (UNTESTABLE, "no pair")


def test_a_level_holds_in_part_unless_a_claim_fails():
    holds, in_part, fails = judged(0.95, 0.1), judged(0.5, 0.1), judged(0.02, 0.1)
    assert level_answer([holds, in_part]) == PARTLY
    assert level_answer([in_part, fails]) == NOT
    assert level_answer([holds, fails]) == PARTLY


@pytest.fixture(scope="module")
def part(induction, task):
    """The program as a part of a model with idle heads beside it."""
    from rasplens.compare.subject.vocabulary import vocabulary_of

    crowd = insert_idle_heads(induction, n=2)
    vocabulary = vocabulary_of(induction, task)
    return compare(induction, crowd, task=task, config=FEW, as_part=True, vocabulary=vocabulary)


def test_a_part_is_found_among_idle_heads(part, induction):
    assert part.verdict.answer == IMPLEMENTS
    assert part.verdict.is_of_part
    assert headline("x", part.verdict).sentence == "A part of the learned model implements the program 'x'."
    heads = part.tables["part_heads"]
    assert set(heads["variable"]) == {"previous", "induction"}
    assert heads.groupby("variable")["effect"].max().min() > 0.5
    claims = {claim.subject: claim.status for claim in part.verdict.all_claims}
    assert claims[GivesAnswers()] == HOLDS
    assert claims[OtherEdges()] == UNTESTABLE


def test_a_part_is_stored_shown_and_read_again(part, tmp_path):
    part.save(tmp_path / "comparison.json")
    assert Comparison.load(tmp_path / "comparison.json").to_dict() == part.to_dict()
    page = render(part)
    assert "gathers is carried by" in page
    assert "axes" not in part.tables
    assert not part.axes


def test_noise_has_no_such_part(induction, task, noise):
    found = compare(induction, noise, task=task, config=FEW, as_part=True)
    assert found.verdict.answer == NOT
    assert "has no part that implements" in headline("x", found.verdict).sentence


def test_another_program_shares_the_edges_that_are_the_same(induction, task, offset):
    """Of a block that repeats itself, "offset" gathers the same tokens, by position instead of by content."""
    found = compare(induction, offset, task=task, config=FEW, as_part=True).verdict
    status = {str(claim.subject): claim.status for claim in found.all_claims}
    assert status["induction gathers along its selector's edges"] == HOLDS
    assert status["keys decide as in the program"] == FAILS
    assert found.answer == PARTLY
