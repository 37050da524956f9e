"""The weights of a weighted program give its votes, also where a model's edges are patched."""

from dataclasses import replace

import numpy as np
import pytest
from weighted_samples import LETTERS, N, reverse, same, two_steps, with_noise

from rasplens.compare.claims.edges.edge_patching import patched_logits
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.weighted.questions import questions
from rasplens.compile import programs, rasp
from rasplens.compile.weighted import (
    Constant,
    Keys,
    Mix,
    Only,
    Patch,
    Vote,
    Votes,
    Weigh,
    as_transformer,
    inputs_of,
    votes,
)
from rasplens.errors import RaspLensError
from rasplens.tasks import task_from_program


@pytest.mark.parametrize("program", [reverse(2.0), with_noise(two_steps())], ids=["reverse", "two steps"])
def test_the_model_votes_as_the_program_does_also_under_patches(program):
    task = replace(task_from_program(programs.reverse(), LETTERS, N), outputs=LETTERS)
    transformer = as_transformer(program, task.vocab, task.visible)
    ids = task.held_out[:30]
    studied = as_studied_model(transformer, task, ids)
    inputs = inputs_of(program, ids, task.vocab, task.visible, task.loss_positions)
    own = votes(program, inputs)
    assert np.allclose(own, studied.clean_logits, atol=1e-4)
    for patch in questions(task, len(ids), 40, np.random.default_rng(0)).values():
        found = votes(program, inputs.of(patch.base), Patch(inputs.of(patch.source), patch.edges, patch.part))
        assert np.allclose(found, patched_logits(studied, patch), atol=1e-4)


def test_another_s_op_is_refused_by_name():
    program = Vote(Votes(rasp.Map(str.upper, rasp.tokens).named("loud"), Keys(Constant("one", 1.0))), LETTERS)
    with pytest.raises(RaspLensError, match="'loud'"):
        as_transformer(program, LETTERS, np.ones((N, N), dtype=bool))


@pytest.mark.parametrize(
    ("keys", "hides", "is_refused"),
    [
        (rasp.indices, lambda k, q: k <= q, False),
        (rasp.indices, lambda k, q: k < q, True),  # the first position has no key left
        (rasp.tokens, lambda k, q: k == "c", True),  # nor has an input without c
    ],
)
def test_a_score_that_may_hide_all_keys_has_no_weights(keys, hides, is_refused):
    """There the program gathers nothing, as RASP does, and a softmax would gather everything."""
    program = Vote(Votes(Mix(Weigh(keys, keys, Only(hides)), rasp.tokens), same()), LETTERS)
    visible = np.ones((N, N), dtype=bool)
    if not is_refused:
        as_transformer(program, LETTERS, visible)
        return
    with pytest.raises(RaspLensError, match="hides keys"):
        as_transformer(program, LETTERS, visible)


def test_a_query_that_sees_nothing_anyway_hides_nothing():
    program = Vote(
        Votes(Mix(Weigh(rasp.indices, rasp.indices, Only(lambda k, q: k < q)), rasp.tokens), same()), LETTERS
    )
    visible = np.tri(N, k=-1, dtype=bool)
    ids = np.array([[0, 1, 2, 0]])
    own = votes(program, inputs_of(program, ids, LETTERS, visible, range(N)))
    logits = np.asarray(as_transformer(program, LETTERS, visible)(ids))
    assert np.allclose(own, logits, atol=1e-4)
