"""Interchange interventions on models whose variables are known to be there, or not."""

import numpy as np
import pytest

from lab.labelled.circuits import CIRCUITS
from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.interchange.accuracy import (
    COLUMNS,
    FOUND,
    interchange_table,
    interchanges,
)
from rasplens.compare.claims.interchange.pairs import draw_pairs
from rasplens.compare.claims.interchange.reference_sites import ReferenceSites
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program
from rasplens.compile.rasp import Aggregate, Select, SequenceMap, indices, tokens
from rasplens.model import disguise
from rasplens.tasks import task_from_program


def interchanged(study, drawn=None):
    drawn = draw_pairs(study, study.variables, 0) if drawn is None else drawn
    return interchanges(study, drawn, representations(study), ReferenceSites(study, 0), seed=0)


@pytest.fixture(scope="module")
def tested(with_itself):
    return interchanged(with_itself)


@pytest.fixture(scope="module")
def mapped():
    """A variable that the linear map finds: a layer reads it together with another one."""
    circuit = CIRCUITS["same_as_first"]
    task, program = circuit.task(), circuit.program()
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    study = study_of(compiled, compiled, task, CompareConfig(n_inputs=100), 0)
    return interchanged(study)


def test_a_compiled_model_holds_its_own_variable_at_its_own_place(tested):
    """All that the one head of the first layer writes is the letter before."""
    (one,) = tested
    assert (one.variable, one.point, one.method) == ("previous", "blocks.0.hook_attn_out", "component")
    assert one.accuracy.score >= 0.95
    assert one.active is one.accuracy
    assert np.isnan([one.dormant, one.random]).all()  # a whole component takes every path
    assert one.control == one.untrained < 0.6
    assert one.ceiling == 1


@pytest.mark.slow
def test_so_does_its_disguise_in_an_oblique_basis(induction, task):
    twin = disguise(induction.transformer, seed=1, basis="oblique", extra_width=3)
    study = study_of(induction, twin, task, CompareConfig(n_inputs=96), 0, vocabulary_of(induction, task))
    (one,) = interchanged(study)
    assert one.accuracy.score >= 0.95
    assert one.active.score >= 0.95
    assert one.control < 0.6


def test_a_subspace_has_controls_of_its_rank(mapped):
    (one,) = mapped
    assert one.method == "linear map"
    assert one.accuracy.score == 1
    assert max(one.random, one.untrained, one.full_stream) < FOUND
    assert one.control == max(one.random, one.untrained)


@pytest.mark.slow
def test_a_model_that_learned_nothing_does_not(with_noise, with_itself):
    """Asked on the pairs of one that answers; of its own there are none."""
    assert interchanged(with_noise) == []
    (one,) = interchanged(with_noise, draw_pairs(with_itself, with_itself.variables, 0))
    assert one.variable == "previous"
    assert one.accuracy.score <= 0.2
    assert one.ceiling >= 0.95  # the search would have found it


def test_the_table_has_a_row_for_each_variable(tested, with_itself):
    table = interchange_table(tested)
    assert tuple(table) == COLUMNS
    row = table.iloc[0]
    assert row["pairs"] == with_itself.config.interchange_pairs
    assert row["score"] == min(row["iia"], row["specificity"])
    assert row["active"] == row["score"]
    assert interchange_table([]).empty


def test_holding_a_subspace_at_its_mean_drops_accuracy(tested, mapped):
    (one,) = tested
    assert one.ablated > 0.3
    (one,) = mapped
    assert one.ablated_random < one.ablated


def test_a_variable_that_follows_from_the_token_holds_elsewhere():
    """The first token, read everywhere: at the first position no directions hold it without the token itself."""
    first = Aggregate(Select(indices, indices, lambda key, query: key == 0), tokens).named("first")
    program = SequenceMap(lambda own, other: own == other, tokens, first).named("same_as_first")
    task = task_from_program(program, "abcd", 5)
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    study = study_of(compiled, compiled, task, CompareConfig(n_inputs=100), 0)
    (own,) = interchanged(study)
    assert own.accuracy.score == 1
    assert 0 not in own.pairs.positions
