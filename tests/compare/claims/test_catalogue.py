"""The claims of a program, and what the evidence says of them."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import CompareConfig, discriminate, study_of
from rasplens.compare.claims.answers import OUT_OF_DISTRIBUTION, AnswersOn, EachAnswer
from rasplens.compare.claims.attention import ATTENTION
from rasplens.compare.claims.catalogue import CLAIMS, SUBJECTS, claim_tables, examine
from rasplens.compare.claims.edges.agreement import RouteTests
from rasplens.compare.claims.edges.questions import OtherEdges
from rasplens.compare.claims.routes import ROUTES, AllRoutes
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, UNTESTABLE
from rasplens.compare.claims.variables import VARIABLES, OneVariable

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


def claims_of(compiled, model, alternative, task):
    distinguishing = {alternative.output: discriminate(compiled.program, alternative.program, task)}
    study = study_of(compiled, model, task, FEW, 0, distinguishing=distinguishing)
    claims, evidence = examine(study, 0)
    return study, evidence, {one.subject: one for one in claims}


@pytest.fixture(scope="module")
def own(induction, offset, task):
    return claims_of(induction, induction, offset, task)


def test_all_claims_of_a_compiled_model_against_itself_hold(own):
    claims = own[2]
    assert {one.status for one in claims.values()} == {HOLDS}
    assert {one.level for one in claims.values()} == {"answers", "variables", "routes"}
    assert OneVariable("previous") in claims
    assert {subject for subject, one in claims.items() if not one.substantial} == {EachAnswer(), OtherEdges()}
    # What happens out of distribution decides nothing.
    assert not any(isinstance(one, AnswersOn) and OUT_OF_DISTRIBUTION in one.inputs for one in claims)


def test_noise_answers_otherwise_and_is_asked_no_more(induction, noise, offset, task):
    claims = claims_of(induction, noise, offset, task)[2]
    assert {one.status for one in claims.values() if one.level == "answers"} == {FAILS}
    assert {one.status for one in claims.values() if one.level != "answers"} == {UNTESTABLE}


@pytest.mark.slow
def test_claims_are_the_seeds(own):
    study, _, claims = own
    again, _ = examine(study, 0)
    assert [repr(one) for one in again] == [repr(one) for one in claims.values()]


def test_each_claim_is_about_one_of_the_subjects_of_its_kind(own):
    _, evidence, claims = own
    assert len({kind.name for kind in CLAIMS}) == len(CLAIMS)
    assert len(set(SUBJECTS)) == len(SUBJECTS)
    assert {type(subject) for subject in claims} <= set(SUBJECTS)
    assert set(claim_tables(evidence)) == {"behaviour", "interchange", "representations", "overlaps", "routes"}


@pytest.mark.slow
@pytest.mark.parametrize("as_part", [False, True])
def test_every_kind_of_claim_that_is_asked_is_announced(induction, task, as_part):
    begun, study = [], study_of(induction, induction, task, FEW, 0, as_part=as_part)
    examine(study, 0, begun.append)
    steps = [stage for stage in begun if ":" in stage]
    assert [stage for stage in begun if stage not in steps] == [k.name for k in CLAIMS if study.scope in k.scopes]
    assert {stage.partition(":")[0] for stage in steps} == ({"effects"} if as_part else set())
    assert ("effects" in begun, "routes" in begun) == (as_part, not as_part)


def test_what_cannot_be_asked_says_why(own):
    study, evidence, _ = own
    nothing = evidence.of(VARIABLES)
    routes = evidence.also(ROUTES, RouteTests([], "no hook point"))
    (none,) = ROUTES.claims(study, routes, np.random.default_rng(0))
    assert (none.subject, none.status, none.reason) == (AllRoutes(), UNTESTABLE, "no hook point")
    assert list(ATTENTION.claims(study, routes, np.random.default_rng(0))) == []
    alone = evidence.also(VARIABLES, replace(nothing, interchanged=[]))
    (previous,) = VARIABLES.claims(study, alone, np.random.default_rng(0))
    assert (previous.subject, previous.status) == (OneVariable("previous"), UNTESTABLE)
