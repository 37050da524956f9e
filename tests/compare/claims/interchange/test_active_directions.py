"""Parts of an interchange that go along with the variable or not, and interchanges that work by a dormant path."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from known_interchanges import scored_pairs

from lab.labelled.circuits import CIRCUITS
from rasplens.compare import CompareConfig, as_studied_model, study_of
from rasplens.compare.claims.interchange.accuracy import interchanges
from rasplens.compare.claims.interchange.active_directions import SMALLEST, split
from rasplens.compare.claims.interchange.das import distributed_alignment_search
from rasplens.compare.claims.interchange.pairs import draw_pairs
from rasplens.compare.claims.interchange.patching import agreement
from rasplens.compare.claims.interchange.reference_sites import ReferenceSites
from rasplens.compare.claims.interchange.sites import mapped_subspaces
from rasplens.compare.claims.interchange.stream_axes import stream_axes
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program
from rasplens.model import Transformer, disguise
from rasplens.model.interventions import Subspace
from rasplens.model.twins.change_of_basis import on_residual

POINT = "blocks.0.hook_resid_post"
"""Where a compiled induction head has the letter before, and has not yet used it."""


def plain(basis):
    """The subspace of an orthonormal basis of the stream as it is."""
    return Subspace(basis, basis)


@pytest.fixture(scope="module")
def studied(with_itself):
    return with_itself.learned


@pytest.fixture(scope="module")
def planted(induction, task):
    """A model with a dormant path.

    There are directions that nothing writes to, and that coordinates of the second layer's keys read as others
    read the letter before, twice as strongly; and directions that the letter before is written to as well, and
    nothing reads.
    """
    model, own = induction.transformer, induction.variables["previous"].directions
    n, width = len(own), model.config.d_model
    weights = dict(
        on_residual(
            model.weights,
            lambda array: np.pad(array, [(0, 0)] * (array.ndim - 2) + [(0, 2 * n), (0, 0)]),
            lambda array: np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 2 * n)]),
        )
    )
    weights["blocks.0.attn.W_O"][..., width : width + n] = model.weights["blocks.0.attn.W_O"][..., own]
    head = model.config.d_head
    for layer, letter in itertools.product(range(2), "QKVO"):
        array = weights[name := f"blocks.{layer}.attn.W_{letter}"]
        weights[name] = np.pad(
            array, [(0, 0), (0, head), (0, 0)] if letter == "O" else [(0, 0), (0, 0), (0, head)]
        )
    queries, keys = weights["blocks.1.attn.W_Q"], weights["blocks.1.attn.W_K"]
    queries[..., head:] = queries[..., :head]
    keys[:, width + n :, head:] = 2 * keys[:, own, :head]
    config = replace(model.config, d_model=width + 2 * n, d_head=2 * head)
    return Transformer(config, weights, model.mask)


@pytest.fixture(scope="module")
def paths(planted, induction, task):
    """That model with pairs of inputs, and the illusory subspaces: half of each direction unread, half dormant."""
    study = study_of(induction, planted, task, CompareConfig(n_inputs=200), 0, vocabulary_of(induction, task))
    chosen = scored_pairs(study, "previous")
    width, n = induction.transformer.config.d_model, len(induction.variables["previous"].directions)
    both = np.zeros((width + 2 * n, n))
    both[width : width + n], both[width + n :] = np.eye(n) / np.sqrt(2), np.eye(n) / np.sqrt(2)
    return study, chosen, dict.fromkeys(chosen.positions, plain(both))


def test_active_and_dormant_parts_are_what_is_read(studied):
    """By hand, in whitened coordinates of what is read: the active part lies in the directions that move, the
    dormant one across it."""
    rng, at = np.random.default_rng(0), studied.task.loss_positions[0]
    own = stream_axes(studied, POINT)[at]
    basis, moves = (np.linalg.qr(rng.normal(size=(own.n_axes, 3)))[0] for _ in range(2))
    active, dormant = split({at: own.subspace(basis)}, {at: own}, {at: own.subspace(moves)})
    first, second = (own.to.T @ part[at].write for part in (active, dormant))
    seen = own.read @ own.read.T
    np.testing.assert_allclose(first + second, seen @ basis, atol=1e-6)
    directions = np.linalg.svd(seen @ moves, full_matrices=False)
    directions = directions[0][:, directions[1] > SMALLEST]
    np.testing.assert_allclose(directions @ directions.T @ first, first, atol=1e-6)
    np.testing.assert_allclose(directions.T @ second, 0, atol=1e-6)
    for part in (active, dormant):
        np.testing.assert_array_equal(part[at].read, own.subspace(basis).read)
    nothing = split({at: own.subspace(basis)}, {at: own}, {})[0]
    np.testing.assert_array_equal(nothing[at].write, 0)  # where the variable moves nothing, all is dormant


def test_parts_go_with_an_oblique_basis(induction, task, studied):
    """What the active part takes is the same part of the same activation."""
    twin = disguise(induction.transformer, seed=1, basis="oblique", extra_width=3)
    other = as_studied_model(twin, task, studied.ids, vocabulary_of(induction, task))
    at, results = studied.task.loss_positions[0], []
    numbers = np.random.default_rng(0).normal(size=(2, studied.n_inputs, 3))
    for one in (studied, other):
        stream = one.residual(POINT)[:, at]
        own = stream_axes(one, POINT)[at]
        # The same directions in both: regressions on the same random numbers.
        basis, moves = (np.linalg.qr(((stream - stream.mean(axis=0)) @ own.to).T @ each)[0] for each in numbers)
        parts = split({at: own.subspace(basis)}, {at: own}, {at: own.subspace(moves)})
        change = stream - np.roll(stream, 1, axis=0)
        results.append([change @ part[at].read @ part[at].write.T @ own.to for part in parts])
    for mine, same in zip(*results, strict=True):
        assert np.abs(mine).max() > 0.1
        np.testing.assert_allclose(mine @ mine.T, same @ same.T, atol=2e-2)


def scores(paths, subspaces, induction):
    """Of an interchange in subspaces, of its active part and of its dormant part."""
    study, chosen, _ = paths
    parts = split(subspaces, stream_axes(study.learned, POINT), moving(paths, induction))
    return [agreement(study.learned, chosen, POINT, part).score for part in (subspaces, *parts)]


def moving(paths, induction):
    """Along which directions the letter before moves the planted model: its own, and those that nothing reads."""
    own = induction.variables["previous"].directions
    width, n = induction.transformer.config.d_model, len(own)
    both = np.zeros((width + 2 * n, n))
    both[own], both[width : width + n] = np.eye(n) / np.sqrt(2), np.eye(n) / np.sqrt(2)
    return dict.fromkeys(paths[2], plain(both))


def test_a_dormant_path_passes_the_interchange_but_cannot_be_found(paths, induction):
    """Directions that no input ever moves bring the program's answers, called up by others that nothing reads.

    All subspaces are sought where the stream varies: there the illusion has nothing of the dormant directions.
    """
    study, chosen, illusion = paths
    assert (study.learned.answers() == study.scored.reference.answers()).all()  # answers do not show the path
    assert agreement(study.learned, chosen, POINT, illusion).score > 0.95
    dormant = slice(-len(induction.variables["previous"].directions), None)
    axes, without = stream_axes(study.learned, POINT), {}
    for position, subspace in illusion.items():
        own = axes[position]
        assert np.linalg.norm(subspace.write[dormant]) > 1
        within = own.back.T @ (own.to.T @ subspace.write)
        np.testing.assert_allclose(within[dormant], 0, atol=1e-6)
        write = subspace.write.copy()
        write[dormant] = 0
        without[position] = Subspace(subspace.read, write)
    assert agreement(study.learned, chosen, POINT, without).score < 0.05
    learned = distributed_alignment_search(study.learned, chosen, POINT, illusion, seed=0, steps=2).subspaces
    assert max(np.abs(one.write[dormant]).max() for one in learned.values()) < 1e-5


def test_the_active_part_of_an_honest_interchange_does_what_the_whole_does(paths, induction):
    """The negative control: the directions that the variable moves, half of each of which nothing reads."""
    whole, active, dormant = scores(paths, moving(paths, induction), induction)
    assert whole > 0.95
    assert active > 0.95
    assert dormant < 0.05


def test_the_map_finds_the_directions_that_move(paths, induction):
    """So the comparison itself has the active part of either subspace right."""
    study = paths[0]
    found = mapped_subspaces(study.learned, representations(study), "previous", POINT)
    for position, own in moving(paths, induction).items():
        wanted, seen = own.write, np.linalg.qr(found[position].write)[0]
        assert np.linalg.svd(seen.T @ wanted, compute_uv=False)[: found[position].rank].min() > 0.99


def test_a_variable_that_is_read_together_with_another_is_no_illusion():
    """A neuron reads the sum of both: what is read alone would take half of the other along."""
    circuit = CIRCUITS["same_as_first"]
    task, program = circuit.task(), circuit.program()
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    study = study_of(compiled, compiled, task, CompareConfig(n_inputs=100), 0)
    (one,) = interchanges(
        study, draw_pairs(study, study.variables, 0), representations(study), ReferenceSites(study, 0), seed=0
    )
    assert one.accuracy.score == one.active.score == 1
    assert one.dormant < 0.05
