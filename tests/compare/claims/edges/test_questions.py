"""What is asked of a model's routes."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.edges.edge_patching import patched
from rasplens.compare.claims.edges.program_edges import between_positions, program_edges
from rasplens.compare.claims.edges.questions import GatheredEdges, Keys, OtherEdges, Queries, questions
from rasplens.compare.claims.posable import posable
from rasplens.compile.rasp import Aggregate, Comparison, Select, numerical, tokens
from rasplens.tasks import compile_for, task_from_program

FEW = CompareConfig(n_inputs=96, n_fitting=30, relevance_inputs=24, questions=40, questions_tried=400)


@pytest.fixture(scope="module")
def pairing(induction, task):
    return study_of(induction, induction, task, FEW, 0).scored


@pytest.fixture(scope="module")
def asked(pairing):
    return list(questions(pairing, 0, pairing.config.questions))


def test_every_route_of_the_program_is_asked_about(asked):
    assert [(one.subject, one.patch.part) for one in asked] == [
        (OtherEdges(), "values"),
        (GatheredEdges(("previous",), ((0, 0),)), "values"),
        (GatheredEdges(("induction",), ((1, 0),)), "values"),
        (Keys(), "keys"),
        (Queries(), "queries"),
    ]
    assert all(len(one) for one in asked)
    assert all(one.drawn <= FEW.questions_tried for one in asked)


def test_edges_are_those_that_the_claim_is_about(asked, pairing, task):
    for one in asked:
        read = program_edges(pairing.compiled.program, task, pairing.ids[one.patch.base])
        assert not (one.patch.edges & ~between_positions(task)).any()
        if one.subject == OtherEdges():
            assert not (one.patch.edges & read.carrying).any()
            np.testing.assert_array_equal(one.patch.edges, between_positions(task) & ~read.carrying)
        elif isinstance(one.subject, GatheredEdges):
            gathered = read.gathered[one.subject.aggregates]
            np.testing.assert_array_equal(one.patch.edges, gathered & between_positions(task))


def test_sources_are_other_inputs_and_both_are_understood(asked, pairing):
    assert not pairing.agrees.all()
    for one in asked:
        assert (pairing.ids[one.patch.base] != pairing.ids[one.patch.source]).any(axis=1).all()
        assert pairing.agrees[one.patch.base].all()
        assert pairing.agrees[one.patch.source].all()


def test_the_compiled_model_says_what_is_expected(asked, pairing):
    for one in asked:
        own, theirs = (pairing.reference.answers()[rows] for rows in (one.patch.base, one.patch.source))
        mixtures = posable(pairing).mixtures()
        said, patterns = patched(pairing.reference, one.patch, watching=mixtures.hooks)
        np.testing.assert_array_equal(one.expected, said)
        np.testing.assert_array_equal(one.changes, said != own)
        np.testing.assert_array_equal(one.at_risk, (own != theirs) & (said == own))
        assert (one.changes | one.at_risk).any(axis=1).all()
        assert posable(pairing).are_posed(one.expected, patterns, mixtures.rows).all()


def test_nothing_changes_along_edges_that_are_not_read(asked):
    for one in asked:
        assert one.changes.any() == (one.subject != OtherEdges())
        assert one.at_risk.any()


def test_questions_are_the_seeds(asked, pairing):
    again, other = (next(questions(pairing, seed, pairing.config.questions)) for seed in (0, 1))
    np.testing.assert_array_equal(again.patch.base, asked[0].patch.base)
    np.testing.assert_array_equal(again.patch.edges, asked[0].patch.edges)
    assert not np.array_equal(other.patch.base[:20], asked[0].patch.base[:20])


def test_without_two_inputs_nothing_is_asked(pairing):
    nobody = replace(pairing)
    vars(nobody)["agrees"] = np.arange(pairing.n_inputs) == np.flatnonzero(pairing.agrees)[0]
    assert [len(one) for one in questions(nobody, 0, nobody.config.questions)] == [0] * 5


def test_of_heads_that_attend_alike_each_goes_with_its_own_aggregate():
    """Both average over everything: by their edges alone, neither would be told from the other."""
    everywhere = [Select(tokens, tokens, Comparison.TRUE) for _ in range(2)]
    shares = [
        numerical(Aggregate(selector, numerical(tokens == token), 0)).named(f"share_{token}")
        for selector, token in zip(everywhere, "ab", strict=True)
    ]
    program = (shares[0] > shares[1]).named("more")
    task = task_from_program(program, "abc", 4)
    compiled = compile_for(task)
    asked = questions(study_of(compiled, compiled, task, FEW, 0).scored, 0, FEW.questions)
    found = {one.subject.aggregates: one.subject.heads for one in asked if isinstance(one.subject, GatheredEdges)}
    assert {name for aggregates in found for name in aggregates} == {"share_a", "share_b"}
    for aggregates, heads in found.items():
        assert {compiled.heads[head] for head in heads} == set(aggregates)


def test_no_question_patches_nothing():
    """A program that averages over everything reads every edge: nothing could be gathered along others."""
    everywhere = Select(tokens, tokens, Comparison.TRUE)
    program = Aggregate(everywhere, numerical(tokens == "a")).named("share")
    task = task_from_program(program, "ab", 4)
    compiled = compile_for(task, program)
    pairing = study_of(compiled, compiled, task, FEW, 0).scored
    asked = {type(one.subject): one for one in questions(pairing, 0, FEW.questions)}
    assert len(asked[OtherEdges]) == 0
    assert len(asked[GatheredEdges]) > 0
    assert all(one.patch.edges.any(axis=(1, 2)).all() for one in asked.values())
