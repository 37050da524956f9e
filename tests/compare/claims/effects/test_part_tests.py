"""The tests of a part, on models of which it is known."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.edges.questions import CountedEdges, GatheredEdges, Keys, Queries
from rasplens.compare.claims.effects.part_tests import part_tests
from rasplens.compare.claims.effects.subjects import CarriedBy, Fed, Sufficient
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program
from rasplens.compile.rasp import Aggregate, Comparison, Select, SelectorWidth, indices, tokens
from rasplens.learned import Architecture, untrained
from rasplens.model.twins.reparametrise import disguise
from rasplens.tasks import compile_for, task_from_program

FEW = CompareConfig(n_inputs=150, n_fitting=50, questions=120)


@pytest.fixture(scope="module")
def offset(mixed_task):
    """It copies what stood five places before, which is what followed only if letters are asked in turn."""
    steps_back = Select(indices, indices, lambda key, query: key == query - 4)
    return compile_program(
        Aggregate(steps_back, tokens).named("offset"), mixed_task.vocab, mixed_task.n_ctx, mask=mixed_task.visible
    )


@pytest.fixture(scope="module")
def own(mixed_induction, mixed_task):
    twin = disguise(mixed_induction, seed=1, extra_width=3)
    return part_tests(
        study_of(
            mixed_induction, twin, mixed_task, FEW, 0, vocabulary_of(mixed_induction, mixed_task), as_part=True
        ),
        0,
    )


def test_a_disguise_of_the_program_does_all_that_it_says(own, mixed_induction):
    assert not own.why_none
    assert {type(one.subject) for one in own.found} == {GatheredEdges, Keys, Queries, CarriedBy, Fed, Sufficient}
    for one in own.found:
        assert one.parts
        for part in one.parts:
            assert len(part) > 20
            # In a few heads alone, some answers are left between both: other heads attend along these edges too.
            assert part.share > (0.7 if isinstance(one.subject, CarriedBy) else 0.97)
        assert one.parts[0].share > np.nanmax([one.floor, 0]) + 0.3
        assert one.control is None or one.parts[0].share > one.control.share + 0.3
    heads = {names[0]: one.group.heads for names, one in own.gathering.items()}
    assert heads == {name: (head,) for head, name in mixed_induction.heads.items()}


@pytest.mark.slow
def test_of_another_program_hardly_anything_moves(mixed_induction, offset, mixed_task):
    """ "offset" gives some of the answers; what mixed_induction reads is nothing to it."""
    found = part_tests(study_of(mixed_induction, offset, mixed_task, FEW, 0, as_part=True), 0)
    tested = [one for one in found.found if one.parts and len(one.parts[0]) > 20]
    moved = {type(one.subject): one.parts[0].share for one in tested}
    assert max(moved[Keys], moved[Queries], moved[Fed]) < 0.1


@pytest.mark.slow
def test_the_model_is_only_asked_where_it_gives_the_programs_answer(mixed_induction, offset, mixed_task):
    study = study_of(mixed_induction, offset, mixed_task, FEW, 0, as_part=True)
    agreed, said = study.scored.agreed, study.scored.reference.answers()
    assert 0.05 < agreed[said >= 0].mean() < 0.9
    steps = []
    for names, one in part_tests(study, 0, steps.append).gathering.items():
        assert names
        asked = one.asked
        assert agreed[asked.patch.base][asked.changes].all()
        assert agreed[asked.patch.base][asked.at_risk].all()
    assert steps[0].startswith("heads of ")
    assert steps[-1] == "heads that feed others"


def test_a_model_that_answers_with_numbers_has_no_differences():
    """There is no logit for each answer."""
    counted = SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("count")
    every = task_from_program(counted, ("a", "b"), 4)
    mixed_task = replace(every, outputs=every.outputs[:-1], readout="number")
    model = untrained(Architecture(1, 1, 8, 8), mixed_task, seed=0)
    study = study_of(compile_for(mixed_task, counted), model, mixed_task, FEW, 0, as_part=True)
    assert "numbers" in part_tests(study, 0).why_none


def test_too_few_answers_are_said(mixed_induction, mixed_task):
    noise = untrained(Architecture(1, 1, 8, 8), mixed_task, seed=0)
    study = study_of(mixed_induction, noise, mixed_task, CompareConfig(n_inputs=10, n_fitting=10), 0, as_part=True)
    study.scored.__dict__["agreed"] = np.zeros_like(study.scored.agreed)
    assert part_tests(study, 0).why_none.startswith("the model gives 0 of the program's answers")


def test_counted_edges_are_asked_in_the_heads_that_count():
    counted = SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("count")
    mixed_task = task_from_program(counted, ("a", "b", "c"), 5)
    compiled = compile_program(counted, mixed_task.vocab, mixed_task.n_ctx, mask=mixed_task.visible)
    study = study_of(compiled, compiled, mixed_task, FEW, 0, as_part=True)
    (found,) = [one for one in part_tests(study, 0).found if isinstance(one.subject, CountedEdges)]
    assert found.parts[0].share > 0.97
    study.__dict__["is_large"] = True
    (found,) = [one for one in part_tests(study, 0).found if isinstance(one.subject, CountedEdges)]
    assert not found.parts
    assert "is not looked for" in found.reason


@pytest.mark.slow
def test_what_feeds_heads_that_carry_little_is_not_asked(mixed_induction, mixed_task, monkeypatch):
    """Heads that were found wrongly are fed by nothing, and that refuted the program."""
    monkeypatch.setattr("rasplens.compare.claims.effects.part_tests.LEAST_CARRIED", 1.1)
    study = study_of(mixed_induction, mixed_induction, mixed_task, FEW, 0, as_part=True)
    (fed,) = [one for one in part_tests(study, 0).found if isinstance(one.subject, Fed)]
    assert fed.parts == ()
    assert "carry less" in fed.reason
