"""The coordinates of a model's stream, and what the rest of the model reads of it."""

import gc
import weakref

import numpy as np
import pytest
import torch

from lab.labelled.circuits import HARD
from lab.labelled.labelled_pairs import MOST_ERROR
from rasplens.compare import as_studied_model, study_of
from rasplens.compare.claims.interchange.accuracy import interchanges
from rasplens.compare.claims.interchange.coordinates import READ
from rasplens.compare.claims.interchange.joint import joint_interchanges
from rasplens.compare.claims.interchange.pairs import draw_pairs
from rasplens.compare.claims.interchange.reference_sites import ReferenceSites
from rasplens.compare.claims.interchange.stream_axes import StreamAxes, readings, stream_axes
from rasplens.compare.config import PRESETS
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program
from rasplens.learned.distillation import distill
from rasplens.model import disguise

POINT = "blocks.0.hook_resid_post"
"""Where a compiled induction head has the letter before, and has not yet used it."""

EVERYWHERE = list(range(9))

WEAKEST = 1e-4
"""Of the strongest reading; below is rounding."""


def projector(readings):
    """Onto the span of columns."""
    directions, sizes, _ = np.linalg.svd(readings.astype(np.float64), full_matrices=False)
    return directions[:, sizes > WEAKEST * sizes.max(initial=0)] @ directions[:, sizes > WEAKEST * sizes.max()].T


def by_position(studied, point):
    """What is read of a stream, in columns."""
    return {position: rows.T for position, rows in enumerate(readings(studied)[point])}


@pytest.fixture(scope="module")
def studied(with_itself):
    return with_itself.learned


@pytest.fixture(scope="module")
def read(studied):
    return by_position(studied, POINT)


def test_what_is_read_is_the_row_space_of_the_weights_that_read(studied, read, induction):
    """By hand: behind the first layer, the second one's queries, keys and values, and the unembedding."""
    weights = induction.transformer.weights
    heads = [weights[f"blocks.1.attn.W_{letter}"] for letter in "QKV"]
    rows = np.concatenate(
        [*(np.concatenate([*head], axis=1) for head in heads), induction.transformer.W_U], axis=1
    )
    rows = rows[:, np.linalg.norm(rows, axis=0) > 0]
    bases, sizes, _ = np.linalg.svd(rows / np.linalg.norm(rows, axis=0), full_matrices=False)
    expected = bases[:, sizes > 1e-6]
    assert 0 < expected.shape[1] < len(expected)
    at = studied.task.loss_positions[0]  # one that answers, and that later ones see
    np.testing.assert_allclose(projector(read[at]), projector(expected), atol=1e-4)


@pytest.mark.parametrize(("wanted", "changes"), [("read", True), ("the rest", False)])
def test_what_is_read_changes_answers_and_the_rest_does_not(studied, read, wanted, changes):
    shift = torch.zeros(studied.model.cfg.n_ctx, studied.model.cfg.d_model)
    for position, basis in read.items():
        whole = np.random.default_rng(position).normal(size=len(basis))
        inside = projector(basis) @ whole
        shift[studied.at(position)] = torch.tensor(inside if wanted == "read" else whole - inside)
    edited = studied.logits([(POINT, lambda stream, hook: stream + shift)])
    assert (np.abs(edited - studied.clean_logits).max() > 0.1) == changes


def test_nothing_is_read_where_no_answer_comes_from(studied, task):
    last = by_position(studied, "blocks.1.hook_resid_post")
    assert {position for position, basis in last.items() if basis.any()} == set(task.loss_positions)


def test_it_goes_with_the_basis_of_the_stream(induction, task, read, studied):
    """In a disguise it is another space, of the same size at every position, that holds as much of the stream."""
    hidden = disguise(induction.transformer, seed=1, extra_width=5)
    other = as_studied_model(hidden, task, studied.ids, vocabulary_of(induction, task))
    found = by_position(other, POINT)
    for position in EVERYWHERE:
        own, same = projector(read[position]), projector(found[position])
        assert np.trace(own) == pytest.approx(np.trace(same))
        lengths = [
            np.linalg.norm(one.residual(POINT)[:, position] @ onto, axis=1)
            for one, onto in ((studied, own), (other, same))
        ]
        np.testing.assert_allclose(*lengths, rtol=1e-3, atol=1e-3)


def test_it_is_the_same_in_a_bridge(induction, task, read, studied):
    bridge = as_studied_model(induction.to_bridge(), task, studied.ids, vocabulary_of(induction, task))
    found = by_position(bridge, POINT)
    for position, basis in read.items():
        np.testing.assert_allclose(projector(found[position]), projector(basis), atol=1e-4)


def test_axes_are_found_once_and_go_with_the_model(induction, task, studied):
    axes = stream_axes(studied, POINT)
    assert sorted(axes) == EVERYWHERE
    assert stream_axes(studied, POINT) is axes
    other = as_studied_model(induction, task, studied.ids[:40])
    assert stream_axes(other, POINT) is not axes
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None


def test_coordinates_that_are_not_kept_are_found_anew(studied, read):
    stream = studied.residual(POINT)
    axes = StreamAxes(stream, np.stack([rows.T for rows in read.values()]), kept=1)
    first, second = axes[3], axes[4]
    assert axes[4] is second
    assert axes[3] is not first
    np.testing.assert_array_equal(axes[3].to, first.to)


def test_axes_say_what_is_read(studied, read):
    for position, own in stream_axes(studied, POINT).items():
        seen = np.linalg.svd(own.back @ read[position], full_matrices=False)
        seen = seen[0][:, seen[1] > READ * seen[1].max()] if read[position].any() else seen[0][:, :0]
        np.testing.assert_allclose(own.read @ own.read.T, seen @ seen.T, atol=1e-6)


@pytest.mark.slow
def test_noise_of_a_trained_model_is_not_interchanged():
    """It goes along with the variables, and unit spread would make as much of it as of them.

    The student of `distill` does what the compiled model does with any two variables patched. With noise among the
    axes every second answer was another.
    """
    circuit = HARD["both_ends"]
    task, program = circuit.task(), circuit.alternative()
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    vocabulary = vocabulary_of(compiled, task)
    student = distill(compiled, vocabulary.tokens(task.sample(np.random.default_rng(0), 2_000)), seed=0)
    assert student.error <= MOST_ERROR
    study = study_of(compiled, student.transformer, task, PRESETS["quick"], 0, vocabulary)
    drawn, reference = draw_pairs(study, study.variables, 0), ReferenceSites(study, 0)
    found = interchanges(study, drawn, representations(study), reference, 0)
    together = list(joint_interchanges(study, drawn, found, reference, 0))
    assert len(together) > 2
    assert min(one.right.mean() for one in together) > 0.95
