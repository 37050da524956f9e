"""How far a model moves information along the program's routes."""

import re

import numpy as np
import pytest

from lab.labelled.circuits import CIRCUITS
from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.edges.agreement import COLUMNS, FEWEST, route_table, route_tests
from rasplens.compare.claims.edges.edge_patching import patched
from rasplens.compare.claims.edges.questions import CountedEdges, GatheredEdges, OtherEdges, Queries
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program, rasp
from rasplens.model import disguise
from rasplens.tasks import compile_for, task_from_program

FEW = CompareConfig(n_inputs=96, n_fitting=30, relevance_inputs=24, questions=40, questions_tried=400)


def sides(name):
    circuit = CIRCUITS[name]
    task = circuit.task()
    both = (
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (circuit.program, circuit.alternative)
    )
    return task, *both


def asked_of(compiled, model, task):
    found, why = route_tests(study_of(compiled, model, task, FEW, 0, vocabulary_of(compiled, task)).scored, 0)
    assert why == ""
    return {one.questions.subject: one for one in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy", "ends"])
def test_a_compiled_model_and_its_disguises_move_what_the_program_says(name):
    task, *both = sides(name)
    for compiled in both:
        twins = (
            disguise(compiled.transformer, seed=1, extra_width=3, basis=basis)
            for basis in ("orthogonal", "oblique")
        )
        for model in (compiled, *twins):
            found = asked_of(compiled, model, task)
            assert all(one.changed.right.all() and one.kept.right.all() for one in found.values())
            assert sum(len(one.changed) + len(one.kept) for one in found.values()) >= 4 * FEW.questions


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("shift", "shift_at_once"),
        ("shift", OtherEdges()),
        ("pointed_at", CountedEdges()),
        ("ends", "last_one"),
        ("histogram", Queries()),
    ],
)
def test_a_program_with_another_selector_does_not(name, asked):
    """It gives all of the same answers."""
    task, own, other = sides(name)
    found = asked_of(own, other, task)
    gathered = {subject: subject.aggregates for subject in found if isinstance(subject, GatheredEdges)}
    one = next(test for subject, test in found.items() if asked in (subject, *gathered.get(subject, ())))
    assert min(part.right.mean() for part in (one.changed, one.kept) if len(part)) < 0.65


def test_counted_edges_are_taken_from_the_heads_that_count():
    """Another head looks at a position whose edge may be counted: without it, it would gather a mixture."""
    first = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda key, _: key == 0), rasp.tokens)
    count = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, lambda key, _: key == "a"))
    program = rasp.categorical(rasp.SequenceMap(lambda n, token: f"{n}{token == 'a'}", count, first))
    task = task_from_program(program, list("abcd"), 5)
    compiled = compile_for(task, program)
    for model in (compiled, disguise(compiled.transformer, seed=1, extra_width=3)):
        one = asked_of(compiled, model, task)[CountedEdges()]
        assert one.changed.right.all()
        assert one.kept.right.all()
        assert len(one.changed) == FEW.questions
    studied = study_of(compiled, compiled, task, FEW, 0, vocabulary_of(compiled, task)).scored.learned
    asked = one.questions
    from_all_heads, _ = patched(studied, asked.patch)
    assert (from_all_heads == asked.expected)[asked.changes].mean() < 0.95


def test_answers_to_other_questions_are_no_better_than_chance(induction, task):
    found = asked_of(induction, induction, task)
    for one in found.values():
        if len(one.changed):
            assert one.control_changed < 0.5
        assert np.isnan(one.control_kept) == (one.questions.subject != OtherEdges())
        if not np.isnan(one.control_kept):
            assert one.control_kept < 0.5  # all edges patched, hardly an answer stays


def test_of_each_pair_one_answer_counts(induction, task):
    for one in asked_of(induction, induction, task).values():
        assert len(one.changed) == min(FEW.questions, one.questions.changes.any(axis=1).sum())
        assert len(one.kept) == min(FEW.questions, one.questions.at_risk.any(axis=1).sum())


def test_a_model_that_answers_otherwise_is_not_asked(induction, noise, task):
    found, why = route_tests(study_of(induction, noise, task, FEW, 0).scored, 0)
    assert found == []
    assert why == f"the model gives all of the program's answers on 0 inputs, where {FEWEST} are needed"


def test_the_table_has_a_row_per_claim(induction, task):
    found = asked_of(induction, induction, task)
    table = route_table(list(found.values()))
    assert tuple(table) == COLUMNS
    assert table["claim"].tolist() == list(map(str, found))
    assert (table["changed"].dropna() == 1).all()
    assert table["n_kept"].tolist() == [len(one.kept) for one in found.values()]
    assert route_table([]).empty


def test_a_question_that_is_answered_otherwise_is_named():
    """What it says can be done by hand: the base, the source and the edges, and both answers."""
    task, reference, other = sides("shift")
    found = asked_of(reference, other, task)[OtherEdges()]
    words = re.fullmatch(
        r"on '([a-d ]+)' with values of '([a-d ]+)' along (.*) the program answers (\w) at (\d), the model (\w)",
        found.example,
    )
    base, source, _, ours, at, theirs = words.groups()
    assert ours != theirs
    answers = task.answers(reference.program, task.ids([base.split()]))[0]
    assert task.answer_name(int(answers[int(at)])) == ours  # nothing is gathered there: the base's own
    assert source != base
    assert all(not one.example for one in asked_of(reference, reference, task).values())
