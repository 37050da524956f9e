"""Heads that attend like no compiled head."""

from dataclasses import replace

import numpy as np
import pytest
from circuit_sides import mixed, sides

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.edges.unmapped_heads import decide_by_the_program, unmapped, unmapped_heads
from rasplens.compare.claims.trials.independent import PairsFrom
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import rasp
from rasplens.model import disguise
from rasplens.tasks import compile_for, task_from_program

FEW = CompareConfig(n_inputs=150, n_fitting=100, relevance_inputs=24)


def pairing_of(program, model, task, vocabulary=None):
    return study_of(program, model, task, FEW, 0, vocabulary or vocabulary_of(program, task)).scored


@pytest.mark.parametrize("name", ["any", "exceeded"])
def test_every_head_of_a_twin_attends_like_a_compiled_head(name):
    task, program, _ = sides(name)
    for model in (program.transformer, disguise(program.transformer, seed=1)):
        assert unmapped_heads(pairing_of(program, model, task)) == []


def ranked(share):
    """The highest by its rank, with a share of the logits, beside the highest directly: the reference."""
    task, directly, by_rank = sides("highest")
    return directly, *mixed(task, directly, by_rank, (1 - share, share)), task


def test_a_head_of_another_mechanism_is_unmapped_and_decides_otherwise():
    directly, model, vocabulary, task = ranked(0.99)
    found = unmapped(pairing_of(directly, model, task, vocabulary), 0)
    (head,) = found.heads
    assert head[0] == 0  # how many exceed each: what is read next
    assert found.trials.right.mean() < 0.75
    directly, model, vocabulary, task = ranked(0.01)  # the negative control: it is there, and decides nothing
    faint = unmapped(pairing_of(directly, model, task, vocabulary), 0)
    assert faint.heads == [head]
    assert faint.trials.right.all()
    assert faint.control < 0.6


def test_any_head_of_a_model_decides_by_what_it_gathers_along_the_edges_of_its_program():
    """Two that copy, taken for unmapped ones."""
    task, program, _ = sides("ends")
    pairing = pairing_of(program, disguise(program.transformer, seed=1), task)
    rng, n = np.random.default_rng(0), 100
    trials, control = decide_by_the_program(pairing, pairing.learned.heads, rng, n)
    assert len(trials) == n
    assert trials.right.all()
    assert control < 0.9
    assert (
        trials.inputs.answers[trials.base, trials.answer] != trials.inputs.answers[trials.source, trials.answer]
    ).all()


def test_what_a_position_gives_to_itself_is_no_other_mechanism():
    """A head that copies its own token, as the program's residual stream has it, is none of the compiled heads."""
    first = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda key, _: key == 0), rasp.tokens)
    own = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.EQ), rasp.tokens)
    both = [rasp.SequenceMap(lambda x, y: x + y, first, token) for token in (rasp.tokens, own)]
    task = task_from_program(both[0], list("abc"), 4)
    program, model = (compile_for(task, rasp.categorical(one)) for one in both)
    found = unmapped(pairing_of(program, disguise(model.transformer, 1), task), 0)
    assert len(found.heads) == 1
    assert found.trials.right.all()
    assert found.control < 0.6


def test_a_part_of_a_model_has_other_heads_beside_it():
    directly, model, vocabulary, task = ranked(0.99)
    assert unmapped(replace(pairing_of(directly, model, task, vocabulary), as_part=True), 0) is None


def test_pairs_are_of_the_inputs_that_are_said():
    directly, model, vocabulary, task = ranked(0.99)
    pairing = pairing_of(directly, model, task, vocabulary)
    found = unmapped(pairing, 0)
    first, others = np.arange(pairing.n_inputs) < 40, np.arange(pairing.n_inputs) >= 40
    again = found.again(PairsFrom(first, others))
    assert again.base.max() < 40 <= again.source.min()
    nothing = np.zeros(pairing.n_inputs, dtype=bool)
    assert len(found.again(PairsFrom(nothing, others))) == 0
