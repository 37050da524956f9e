"""Claims on routes, on all pairs of inputs."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from known_trials import known_trials

import rasplens.compare.study
from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched
from rasplens.compare.claims.edges.enumeration import MOST_KEPT, _attends_once, _mixed, enumerator
from rasplens.compare.claims.edges.pool import pool_of
from rasplens.compare.claims.edges.program_edges import between_positions
from rasplens.compare.claims.edges.questions import (
    CountedEdges,
    GatheredEdges,
    Keys,
    OtherEdges,
    Queries,
    questions,
)
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program, rasp
from rasplens.model import disguise
from rasplens.tasks import task_from_program

ALL = CompareConfig(
    n_inputs=60, n_fitting=40, relevance_inputs=24, questions=20, questions_tried=400, enumerated=100_000
)


def by_match():
    """How often the own token occurs: counts, by keys and queries."""
    return rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("own_count")


def by_letter():
    """The same answers from counts of "a" and of what is no "a"."""
    of_a = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.Full("a"), rasp.Comparison.EQ)).named("n_a")
    others = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.Full("a"), rasp.Comparison.NEQ)).named("n_b")
    return rasp.Where(rasp.tokens == "a", of_a, others).named("own_count_by_letter")


def first():
    """The first token."""
    at_first = rasp.Select(rasp.indices, rasp.Full(0), rasp.Comparison.EQ)
    return rasp.Aggregate(at_first, rasp.tokens).named("first")


def in_two_steps():
    """The token at the place that the first token names: two layers."""
    place = rasp.Map("ab".index, first()).named("place")
    there = rasp.Select(rasp.indices, place, rasp.Comparison.EQ)
    return rasp.Aggregate(there, rasp.tokens).named("there")


def study(program, other=None):
    """A program, and a model of another one, on all sequences of three letters."""
    task = task_from_program(program(), "ab", 3)
    compiled, model = (
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (program, other or program)
    )
    return study_of(compiled, model, task, ALL, 0)


def each(found):
    """By the type of its subject, each claim on all pairs; beside the questions."""
    pairs = enumerator(found.whole)
    return {type(one.subject): (one, pairs.enumerated(one, None)) for one in questions(found.scored, 0, 20)}


def by_brute_force(found, one):
    """Of every set of edges between positions, on every pair: how many questions there are, and wrong answers."""
    pool, edges = pool_of(found.whole), np.argwhere(between_positions(found.task))
    sets = np.zeros((2 ** len(edges), 3, 3), dtype=bool)
    sets[:, *edges.T] = list(itertools.product([False, True], repeat=len(edges)))
    which, base, source = (
        part.ravel() for part in np.meshgrid(range(len(sets)), *[range(len(pool.inputs))] * 2, indexing="ij")
    )
    patched_edges = sets[which]
    if isinstance(one.subject, CountedEdges):
        patched_edges &= pool.edges.of(base).counted
    patch = EdgePatch(pool.inputs[base], pool.inputs[source], patched_edges, one.patch.part)
    posed = pool.posed_by(patch)
    given, _ = patched(found.whole.learned, patch)
    otherwise = (given != posed.expected) & (posed.changes | posed.at_risk) & posed.asked[:, None]
    return int(posed.asked.sum()), int(otherwise.any(axis=1).sum())


@pytest.mark.slow
@pytest.mark.parametrize("claim", [Keys, Queries, CountedEdges])
@pytest.mark.parametrize(
    ("program", "other"), [(by_match, by_match), (by_match, by_letter), (by_letter, by_match)]
)
def test_rows_are_all_is_all_that_there_is_to_ask(program, other, claim):
    """Whether any set of edges, of all sets, is answered otherwise: the same by brute force."""
    found = study(program, other)
    one, enumerated = each(found)[claim]
    asked, wrong = by_brute_force(found, one)
    assert (enumerated is None) == (asked == 0)
    if enumerated is not None:
        assert (enumerated.wrong == 0) == (wrong == 0)
        assert bool(enumerated.example) == bool(wrong)


@pytest.mark.slow
def test_brute_force_finds_both():
    """The negative control: not all claims of the pairs above are true, nor are all false."""
    wrong = [
        by_brute_force(found, each(found)[Queries][0])[1]
        for found in (study(by_match), study(by_match, by_letter))
    ]
    assert wrong[0] == 0
    assert wrong[1] > 0


@pytest.mark.slow
def test_a_program_is_proved_on_its_own_model_and_in_other_weights():
    own = study(first)
    twin = disguise(own.compiled.transformer, seed=1, basis="oblique", condition=10.0, extra_width=2)
    vocabulary = vocabulary_of(own.compiled, own.task)
    for found in (own, study_of(own.compiled, twin, own.task, ALL, 0, vocabulary)):
        claims = each(found)
        for kind in (OtherEdges, GatheredEdges):
            assert claims[kind][1].wrong == 0
            assert claims[kind][1].every == "all 64 pairs"
            assert claims[kind][1].asked > 12


def test_one_pair_of_all_is_a_counterexample():
    """A model whose answer to one input follows another program."""

    def gated():
        """The first letter; where all are "b", the second."""
        of_a = rasp.Select(rasp.tokens, rasp.Full("a"), rasp.Comparison.EQ)
        at_second = rasp.Select(rasp.indices, rasp.Full(1), rasp.Comparison.EQ)
        second = rasp.Aggregate(at_second, rasp.tokens).named("second")
        return rasp.Where(rasp.SelectorWidth(of_a).named("n_a") == 0, second, first()).named("mostly_first")

    found = study(first, gated)
    assert (found.whole.learned.answers() == found.whole.reference.answers()).all()
    enumerated = each(found)[GatheredEdges][1]
    assert 0 < enumerated.wrong < enumerated.asked / 2
    assert enumerated.example.startswith("on 'b b b' with values of 'a ")
    assert enumerated.example.endswith(" the program answers a at 1, the model b")


@pytest.mark.slow
def test_some_of_all_questions_are_kept_as_trials():
    found = study(by_match, by_letter)
    for one, everywhere in each(found).values():
        if everywhere is None or not everywhere.wrong:
            continue
        some = everywhere.some
        assert len(some) == min(everywhere.asked, MOST_KEPT)
        assert (~some.right).mean() <= everywhere.wrong / everywhere.asked + 0.1
        assert not some.right.all()
        read = found.scored.reference.answers()[some.base, some.answer]
        assert (read >= 0).all()
        assert one.subject
    assert any(everywhere and everywhere.wrong for _, everywhere in each(found).values())


def test_what_is_kept_is_drawn_from_all_alike():
    rng, some, seen = np.random.default_rng(0), known_trials([]), 0
    for i in range(30):
        found = known_trials([i % 2 == 0] * 500)
        seen += len(found)
        some = _mixed(some, found, seen, rng)
        assert len(some) == min(seen, MOST_KEPT)
    assert 0.4 < some.right.mean() < 0.6


@pytest.mark.slow
def test_where_several_layers_attend_rows_and_single_edges_are_proved():
    claims = each(study(in_two_steps))
    for kind, every in {
        GatheredEdges: "all 64 pairs",
        Keys: "all 64 pairs, row by row",
        Queries: "all 64 pairs, row by row",
    }.items():
        assert claims[kind][1].wrong == 0
        assert claims[kind][1].every == every


@pytest.mark.slow
def test_a_row_whose_query_does_not_decide_is_a_counterexample():
    """The other program gathers from both places and chooses between them."""

    def by_choice():
        at_second = rasp.Select(rasp.indices, rasp.Full(1), rasp.Comparison.EQ)
        second = rasp.Aggregate(at_second, rasp.tokens).named("second")
        return rasp.Where(first() == "a", first(), second).named("chosen")

    found = study(in_two_steps, by_choice)
    assert (found.whole.learned.answers() == found.whole.reference.answers()).all()
    enumerated = each(found)[Queries][1]
    assert 0 < enumerated.wrong < enumerated.asked
    assert "with queries of" in enumerated.example


@pytest.mark.slow
def test_so_many_questions_at_most():
    found = study(by_match)
    n_pairs = found.whole.n_inputs**2
    for most, proved in ((3 * n_pairs, True), (3 * n_pairs - 1, False)):
        limited = study_of(found.compiled, found.compiled, found.task, replace(ALL, enumerated=most), 0)
        assert (each(limited)[Keys][1] is not None) == proved


def test_inputs_that_a_model_answers_otherwise_are_not_asked_about():
    def differing():
        return rasp.Where(rasp.indices == 2, rasp.tokens, first()).named("last_differs")

    enumerated = each(study(first, differing))[OtherEdges][1]
    assert enumerated.every == "all 16 pairs of inputs that it answers as the program does"


def test_larger_models_and_more_inputs_are_not_run_whole(monkeypatch):
    found = study(first)
    assert found.whole.n_inputs == 8
    few = study_of(found.compiled, found.compiled, found.task, replace(ALL, enumerated=7), 0)
    assert few.whole is None
    monkeypatch.setattr(rasplens.compare.study, "MOST_PARAMETERS", 10)
    assert study(first).whole is None


def test_inputs_that_are_not_all_sequences_are_those_that_were_drawn():
    """That there are no others is then no proof, and rows of other inputs are not all that there is."""
    program = by_match()

    def draw(rng, n):
        ids = rng.integers(0, 2, (n, 3))
        ids[:, 0] = 0
        return ids

    held_out = np.array([[0, 1, 1]])
    task = replace(
        task_from_program(program, "ab", 3),
        draw=draw,
        held_out=held_out,
        is_held_out=lambda ids: (ids == held_out).all(axis=1),
    )
    compiled = compile_program(program, task.vocab, 3, mask=task.visible)
    found = study_of(compiled, compiled, task, ALL, 0)
    assert found.whole.n_inputs == 4
    claims = each(found)
    assert claims[OtherEdges][1].every == "all 16 pairs of inputs that were drawn"
    assert claims[Keys][1].every == "all 16 pairs of inputs that were drawn, row by row"


def test_of_a_module_that_is_not_ours_rows_are_not_known_to_be_all():
    """It may move information between positions by other means than attention."""
    found = study(by_match)

    class Foreign(torch.nn.Module):
        pass

    foreign = replace(found.whole.learned, model=Foreign())
    assert enumerator(found.whole).rows_are_all
    assert not _attends_once(foreign)
