"""The claims on routes, on trials and on all pairs of inputs."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.claim import Claim, Enumerated
from rasplens.compare.claims.edges.questions import GatheredEdges, OtherEdges
from rasplens.compare.claims.kind import Evidence
from rasplens.compare.claims.routes import ROUTES
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, UNTESTABLE
from rasplens.compare.verdict.headline import headline
from rasplens.compare.verdict.verdict import judge
from rasplens.compile import compile_program, rasp
from rasplens.tasks import compile_for, task_from_program

SMALL = CompareConfig(n_inputs=60, n_fitting=60, relevance_inputs=24, questions=40, questions_tried=400)


def at(name, place):
    there = rasp.Select(rasp.indices, rasp.Full(place), rasp.Comparison.EQ)
    return rasp.Aggregate(there, rasp.tokens).named(name)


@pytest.fixture(scope="module")
def own():
    program = at("first", 0)
    task = task_from_program(program, "ab", 4)
    compiled = compile_for(task, program)
    return study_of(compiled, compiled, task, SMALL, 0)


@pytest.mark.slow
def test_a_program_is_proved_on_its_own_model(own):
    found = judge(own, 0)
    routes = {claim.subject: claim for claim in found.all_claims if claim.level == "routes"}
    gathered = next(claim for subject, claim in routes.items() if isinstance(subject, GatheredEdges))
    assert gathered.status_words == "holds (all 256 pairs)"
    assert (gathered.score, gathered.low, gathered.high) == (1, 1, 1)
    assert gathered.n > SMALL.questions
    assert routes[OtherEdges()].proof == "all 256 pairs"
    answers = [claim for claim in found.all_claims if claim.level == "answers"]
    assert {claim.status_words for claim in answers} == {"holds (all 16 inputs)"}
    n_proved = sum(claim.is_proved for claim in found.all_claims)
    assert f"{n_proved} of them proved" in found.reasons[0]
    said = {line.level: line.counts for line in headline("first", found).levels}
    assert said["answers"] == "2 of 2 claims hold, 2 proved"
    assert Claim.from_dict(gathered.to_dict(), ROUTES.subjects) == gathered


@pytest.mark.slow
def test_without_enumeration_nothing_is_proved(own):
    sampled = study_of(own.compiled, own.compiled, own.task, replace(SMALL, enumerated=0), 0)
    found = judge(sampled, 0)
    assert not any(claim.proof or claim.counterexample for claim in found.all_claims)
    assert {claim.subject: claim.status for claim in found.all_claims if claim.level == "routes"} == {
        claim.subject: claim.status for claim in judge(own, 0).all_claims if claim.level == "routes"
    }


@pytest.mark.slow
def test_a_rival_is_refuted_by_a_pair(own):
    program = rasp.Where(rasp.indices == 3, at("last", 3), at("first", 0)).named("last_or_first")
    task = task_from_program(program, "ab", 4)
    compiled, rival = (
        compile_program(one, task.vocab, 4, mask=task.visible)
        for one in (program, rasp.Where(rasp.indices == 3, rasp.tokens, at("first", 0)).named("own_or_first"))
    )
    found = judge(study_of(compiled, rival, task, SMALL, 0), 0)
    refuted = [claim for claim in found.all_claims if claim.counterexample]
    assert all(not claim.proof for claim in refuted)
    for claim in refuted:
        assert "are answered otherwise: on '" in claim.counterexample
        assert claim.counterexample in " ".join(found.reasons) or claim.status == HOLDS


def with_enumerated(own, enumerated):
    evidence = Evidence().also(ROUTES, ROUTES.test(own, Evidence(), 0))
    tests = evidence.of(ROUTES)
    subject = next(iter(tests.enumerated))
    tests = replace(tests, enumerated={subject: enumerated})
    claims = ROUTES.claims(own, evidence.also(ROUTES, tests), np.random.default_rng(0))
    return next(claim for claim in claims if claim.subject == subject)


def test_a_counterexample_names_itself_and_leaves_the_trials_to_judge(own):
    claim = with_enumerated(own, Enumerated("all 256 pairs", 200, 3, "on 'a' the program answers a, the model b"))
    assert (claim.status, claim.proof) == (HOLDS, "")
    assert claim.counterexample == (
        "3 of 200 questions on all 256 pairs are answered otherwise: on 'a' the program answers a, the model b"
    )


@pytest.mark.slow
def test_what_cannot_be_tested_is_not_proved(own):
    """Too few pairs change an answer: all of them may be right in many models."""
    few = study_of(own.compiled, own.compiled, own.task, replace(SMALL, questions=5), 0)
    found = {claim.subject: claim for claim in judge(few, 0).all_claims if claim.level == "routes"}
    assert {claim.status for claim in found.values()} == {UNTESTABLE}
    assert not any(claim.proof for claim in found.values())
    assert FAILS not in {claim.status for claim in found.values()}
