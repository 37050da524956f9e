"""Heads that carry what a program gathers."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.edges.questions import GatheredEdges, questions
from rasplens.compare.claims.effects.asking import Asking
from rasplens.compare.claims.effects.groups import MOST, group_of
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.model.twins.heads import duplicate_head, insert_idle_heads
from rasplens.model.twins.pathways import plant_decoy

FEW = CompareConfig(n_inputs=100, n_fitting=50, questions=40)


def groups_of(mixed_induction, model, mixed_task):
    """By the first of its aggregates, the group of each selector, and the pairs and trials it was found on."""
    study = study_of(mixed_induction, model, mixed_task, FEW, 0, vocabulary_of(mixed_induction, mixed_task))
    asking, found = Asking(study.scored, np.random.default_rng(0)), {}
    for asked in questions(study.scored, 0, 40):
        if isinstance(asked.subject, GatheredEdges):
            trials = asking.trials(asked.patch.base, asked.changes, asked.expected)
            found[asked.subject.aggregates[0]] = group_of(study.learned, asked.patch, trials), asked, trials, study
    return found


@pytest.mark.slow
def test_each_selector_has_the_head_that_was_compiled_for_it(mixed_induction, mixed_task):
    found = groups_of(mixed_induction, mixed_induction, mixed_task)
    by_variable = {name: head for head, name in mixed_induction.heads.items()}
    for name, (group, *_) in found.items():
        assert group.heads == (by_variable[name],)
        assert group.alone[0] > 0.85
        assert group.attention[0] > 0.9 > group.uniform
    assert len(found) == 2


@pytest.mark.slow
def test_a_head_that_is_split_in_two_is_found_together(mixed_induction, mixed_task):
    """Each half alone moves hardly anything, for the other decides on."""
    (layer, head), *_ = [at for at, name in mixed_induction.heads.items() if name == "induction"]
    twin = duplicate_head(mixed_induction, layer, head)
    group, *_ = groups_of(mixed_induction, twin, mixed_task)["induction"]
    assert len(group.heads) == 2
    assert {layer for layer, _ in group.heads} == {layer}


@pytest.mark.slow
def test_heads_are_found_among_many_idle_ones(mixed_induction, mixed_task):
    """More than are tried one by one: they come by their attention, and by their effect to first order."""
    crowd = insert_idle_heads(mixed_induction, n=MOST)
    assert crowd.config.n_layers * crowd.config.n_heads > 2 * MOST
    for group, *_ in groups_of(mixed_induction, crowd, mixed_task).values():
        assert len(group.heads) == 1
        assert group.alone[0] > 0.85


@pytest.mark.slow
def test_a_decoy_that_attends_alike_is_not_taken(mixed_induction, mixed_task):
    (layer, head), *_ = [at for at, name in mixed_induction.heads.items() if name == "induction"]
    group, *_ = groups_of(mixed_induction, plant_decoy(mixed_induction, layer, head), mixed_task)["induction"]
    assert len(group.heads) == 1
    assert group.alone[0] > 0.9


@pytest.mark.slow
def test_where_nothing_moves_there_is_no_group(mixed_induction, mixed_task):
    _, asked, trials, study = groups_of(mixed_induction, mixed_induction, mixed_task)["induction"]
    none = replace(asked.patch, edges=np.zeros_like(asked.patch.edges))
    assert group_of(study.learned, none, trials) is None


@pytest.mark.slow
def test_no_trials_find_no_group(mixed_induction, mixed_task):
    _, asked, trials, study = groups_of(mixed_induction, mixed_induction, mixed_task)["induction"]
    assert group_of(study.learned, asked.patch, trials.within(slice(0, 0))) is None
