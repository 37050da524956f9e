"""How heads attend where no intervention tells."""

from dataclasses import replace

import numpy as np
import pytest
from circuit_sides import sides

from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.edges.attended import attended
from rasplens.compare.config import get_config
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.model import Transformer, disguise
from rasplens.model.twins import add_self_edges, duplicate_head, insert_idle_heads, plant_decoy, split_head
from rasplens.tasks import compile_for, task_from_program

FEW = CompareConfig(n_inputs=120, n_fitting=100, relevance_inputs=24)


def seen(compiled, model, task, vocabulary=None):
    return list(attended(study_of(compiled, model, task, FEW, 0, vocabulary), seed=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["any", "latest_a", "lower"])
def test_a_compiled_model_attends_as_itself_and_its_rival_does_not(name):
    task, *both = sides(name)
    for own, other in (both, both[::-1]):
        twin = disguise(own.transformer, seed=1, extra_width=2, basis="oblique")
        for model, vocabulary in ((own, None), (twin, vocabulary_of(own, task))):
            found = seen(own, model, task, vocabulary)
            assert found
            assert all((one.alike == one.rows).all() and one.similarity > 0.999 for one in found)
            assert all(one.moves.right.all() and len(one.moves) >= 100 for one in found)
        assert min(one.alike[one.rows].mean() for one in seen(own, other, task)) < 0.7


def test_heads_that_share_a_job_attend_together():
    task, program, _ = sides("shift")
    weights, vocabulary = program.transformer, vocabulary_of(program, task)
    for change in (split_head, duplicate_head, add_self_edges):
        found = seen(program, disguise(change(weights, 0, 0), 3), task, vocabulary)
        assert all((one.alike == one.rows).all() for one in found), change.__name__
    idle = seen(program, disguise(insert_idle_heads(weights, 2, 3), 3), task, vocabulary)
    assert all((one.alike == one.rows).all() for one in idle)


@pytest.mark.parametrize("name", ["any", "exceeded"])
def test_heads_of_no_use_do_not_attend_along(name):
    """Together with an idle head that attends elsewhere, one that looks would pass for one that counts."""
    task, looking, counting = sides(name)
    for change in (lambda w: insert_idle_heads(w, 2, 0), lambda w: plant_decoy(w, 0, 0)):
        model = disguise(change(looking.transformer), 0)
        (found,) = seen(counting, model, task, vocabulary_of(looking, task))
        assert len(found.heads) == 1
        assert found.alike[found.rows].mean() < 0.3


@pytest.mark.parametrize(("times", "alike"), [(0.05, False), (0.2, True), (4.0, True), (200.0, False)])
def test_what_a_counting_head_leaves_to_the_rest_is_its_own(times, alike):
    """Any share against one position does, as long as the rest takes some and not all."""
    task, _, counting = sides("any")
    study = study_of(counting, counting, task, FEW, 0)
    for part in (study.scored, study.fitting):
        own = part.reference.whole_pattern(0).copy()
        scaled = own * np.where(np.arange(own.shape[-1]) == 0, times, 1)
        part.learned._known["blocks.0.attn.hook_pattern"] = scaled / scaled.sum(axis=-1, keepdims=True)
        assert part.learned is not part.reference
    (found,) = attended(study, seed=0)
    assert found.alike[found.rows].all() == alike


def test_along_which_of_the_programs_edges_a_head_attends():
    task, program, _ = sides("any")
    (found,) = seen(program, program, task)
    assert found.gathers == (("any_by_looking_found",),)
    task, _, counting = sides("any")
    (found,) = seen(counting, counting, task)
    assert found.gathers == ()


def test_a_model_without_a_head_of_use_attends_like_nothing():
    """It is said, not passed over."""
    task, looking, _ = sides("any")
    weights = looking.transformer
    silent = {name: np.zeros_like(a) if name.endswith("attn.W_O") else a for name, a in weights.weights.items()}
    model = Transformer(replace(weights.config, identity_o=False), silent, weights.mask)
    (found,) = seen(looking, model, task, vocabulary_of(looking, task))
    assert found.heads == ()
    assert not found.alike.any()
    assert found.similarity == 0


def test_heads_that_attend_alike_for_something_else_do_not_undo_what_one_decides():
    """How often the number of a token's occurrences occurs: two counts by the same selector in one layer."""
    entry = CATALOGUE["histogram_nd"]
    task = task_from_program(entry.build(), entry.vocab, entry.max_len)
    compiled = compile_for(task, entry.build())
    study = study_of(compiled, compiled, task, get_config("quick"), 0)
    moved = [one.moves.right.mean() for one in attended(study, 0) if len(one.moves)]
    assert len(moved) > 1
    assert min(moved) > 0.9
