"""The verdict on a part of a model."""

import numpy as np
import pytest

from rasplens.compare import CompareConfig, Comparison, compare
from rasplens.compare.claims.edges.questions import GatheredEdges, Keys, OtherEdges
from rasplens.compare.claims.effects.effect import Effect
from rasplens.compare.claims.effects.effect_test import EffectTest
from rasplens.compare.claims.effects.given_answers import GivesAnswers
from rasplens.compare.claims.effects.part import Judged, claim_of, told_by_edges
from rasplens.compare.claims.effects.subjects import CarriedBy, Sufficient
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, IN_PART, OPEN, UNTESTABLE
from rasplens.compare.report.page import render
from rasplens.compare.verdict.headline import headline
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY, level_answer
from rasplens.compile.rasp import Aggregate, Map, Select, SequenceMap, Where, indices, tokens
from rasplens.model.twins.heads import insert_idle_heads
from rasplens.tasks import compile_for, task_from_program

FEW = CompareConfig(n_inputs=150, n_fitting=50, questions=120, enumerated=0)


KEYS = Keys()


def judged(share, spread, floor=0.1, n=100, subject=KEYS, substantial=True, control=None, kept=None):
    """A claim on trials whose shares lie around one; a control's, and of answers that stay, around others."""
    rng = np.random.default_rng(0)

    def effect(of):
        return Effect(of + spread * rng.normal(size=n), np.ones(n))

    of_others = None if control is None else effect(control)
    parts = [effect(one) for one in (share, kept) if one is not None]
    test = EffectTest(subject, tuple(parts), of_others, floor, "patched", substantial)
    names = [
        name for name, one in zip(("changed", "kept"), (share, kept), strict=True) if one is not None and n > 12
    ]
    shares = {name: part.interval(400, rng) for name, part in zip(names, parts, strict=False)}
    above = None if control is None or share is None else parts[0].above(of_others, 400, rng)
    return claim_of(Judged(test, shares, above), needed=12)


def test_a_claim_holds_wholly_in_part_or_not_at_all():
    assert judged(0.95, 0.1).status == HOLDS
    assert judged(0.5, 0.1).status == IN_PART
    assert judged(0.02, 0.1).status == FAILS
    assert judged(0.76, 1.0).status == OPEN


def test_what_other_edges_reach_as_well_is_nothing():
    assert judged(0.5, 0.1, floor=0.6).status == FAILS
    assert judged(0.95, 0.1, floor=0.95).status == OPEN
    assert judged(0.95, 0.1, floor=0.99).status == FAILS
    assert judged(0.95, 0.1, floor=float("nan")).status == HOLDS


def test_what_goes_to_any_other_answer_as_well_is_nothing():
    """Where attention is lost, the model's own answer is: it then goes to no answer in particular."""
    assert judged(0.5, 0.1, control=0.3).status == IN_PART
    assert judged(0.5, 0.1, control=0.48).status == FAILS
    assert judged(0.5, 0.5, control=0.4).status == OPEN
    assert judged(0.95, 0.1, control=0.5).status == HOLDS
    assert judged(0.95, 0.1, control=0.5).control == pytest.approx(0.5, abs=0.05)


def test_what_should_stay_and_does_not_refutes():
    assert judged(0.95, 0.1, kept=0.5).status == FAILS
    assert judged(0.95, 0.1, kept=0.95).status == HOLDS


def test_where_nothing_should_change_nothing_is_shown_but_by_what_does():
    alone = {"share": None, "spread": 0.1}
    assert judged(**alone, kept=0.5).status == FAILS
    assert judged(**alone, kept=0.95).status == UNTESTABLE


def test_which_heads_are_at_work_refutes_nothing():
    for heads in (Sufficient(((0, 0),)), CarriedBy(("previous",), ((0, 0),))):
        for share in (0.0, 0.3):
            assert judged(share, 0.1, subject=heads, substantial=False).status == UNTESTABLE
        assert judged(0.65, 0.1, subject=heads, substantial=False).status == HOLDS


def test_few_trials_say_nothing():
    assert judged(0.95, 0.1, n=5).status == UNTESTABLE
    nothing = claim_of(Judged(EffectTest(KEYS, (), None, float("nan"), "no pair"), {}, None), needed=12)
    assert (nothing.status, nothing.reason) == (UNTESTABLE, "no pair")


def test_a_level_holds_in_part_unless_a_claim_fails():
    holds, in_part, fails = judged(0.95, 0.1), judged(0.5, 0.1), judged(0.02, 0.1)
    assert level_answer([holds, in_part], is_of_part=True) == PARTLY
    assert level_answer([holds, fails], is_of_part=True) == NOT
    assert level_answer([holds, fails]) == PARTLY  # of a whole model


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


def test_edges_tell_of_what_is_read_and_not_of_what_is_computed():
    back = Select(indices, indices, lambda key, query: key == max(query - 1, 0))
    read = Aggregate(back, tokens).named("read")
    twice = Aggregate(back, read).named("twice")
    computed = Aggregate(back, Map(lambda t: t == "a", twice)).named("computed")
    assert told_by_edges(computed, {"read", "twice", "computed"}) == {"read", "twice"}
    assert told_by_edges(computed, {"twice", "computed"}) == set()
    unnamed = SequenceMap(
        lambda x, y: x, Aggregate(back, tokens), Aggregate(back, Map(lambda t: t == "a", tokens))
    )
    assert told_by_edges(unnamed, {"aggregate"}) == set()  # which of the two is meant nobody knows


def test_noise_has_no_such_part(induction, task, noise):
    found = compare(induction, noise, task=task, config=FEW, as_part=True)
    assert found.verdict.answer == NOT
    assert "has no part that implements" in headline("x", found.verdict).sentence


@pytest.mark.slow
def test_another_program_shares_the_edges_that_are_the_same(induction, task, offset):
    """Of a block that repeats itself, "offset" gathers the same tokens, by position instead of by content."""
    found = compare(induction, offset, task=task, config=FEW, as_part=True).verdict
    status = {str(claim.subject): claim.status for claim in found.all_claims}
    assert status["induction gathers along its selector's edges"] == HOLDS
    assert status["keys decide as in the program"] == FAILS
    assert (found.levels["routes"], found.answer) == (NOT, NOT)


@pytest.mark.slow
def test_a_part_that_another_mechanism_does_for_one_token_names_that_token():
    """The answers are the same; on average, five sixths of the difference move as the program says."""
    mirrored = Select(indices, indices, lambda key, query: key == 4 - query)
    directly = Aggregate(mirrored, tokens).named("directly")
    following = Aggregate(Select(indices, indices, lambda key, query: key == (query + 1) % 5), tokens).named(
        "next"
    )
    relay = Select(indices, indices, lambda key, query: key == (3 - query) % 5)
    relayed = Aggregate(relay, following).named("relayed")
    gated = Where(tokens == "a", relayed, directly).named("gated")
    task = task_from_program(directly, "abcdef", 5)
    program, model = (compile_for(task, one) for one in (directly, gated))
    found = compare(program, model, task=task, config="standard", as_part=True).verdict
    (gathers,) = [claim for claim in found.all_claims if isinstance(claim.subject, GatheredEdges)]
    assert gathers.status == FAILS
    assert gathers.except_where.startswith("the token where the answer is read is 'a'")
    assert found.answer == PARTLY
    assert compare(program, program, task=task, config="quick", as_part=True).verdict.answer == IMPLEMENTS
