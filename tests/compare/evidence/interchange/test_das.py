"""Subspaces learned by gradient descent."""

import numpy as np
import pytest

from rasplens.compare.evidence.interchange.das import RANK, _start, distributed_alignment_search, principal_axes
from rasplens.compare.evidence.interchange.pairs import interchange_pairs, interchangeable_positions
from rasplens.compare.evidence.interchange.patching import agreement
from rasplens.compare.evidence.interchange.sites import mapped_subspaces
from rasplens.compare.evidence.subspaces.representations import representations

POINT = "blocks.0.hook_resid_post"


@pytest.fixture(scope="module")
def pairs(with_itself):
    return interchange_pairs(
        with_itself.fitting, "previous", interchangeable_positions(with_itself, "previous"), seed=0
    )


@pytest.fixture(scope="module")
def learned(with_itself, pairs):
    return distributed_alignment_search(with_itself.fitting.learned, pairs, POINT, {}, seed=0, steps=50)


def random_start(pairs, studied):
    stream = studied.residual(POINT)
    axes = {position: principal_axes(stream[:, position]) for position in pairs.positions}
    directions, coordinates = _start({}, axes, 0)
    bases = directions @ np.linalg.qr(coordinates)[0]
    return dict(zip(pairs.positions, bases, strict=True))


def test_what_is_learned_is_better_than_where_it_started(with_itself, pairs, learned):
    studied = with_itself.fitting.learned
    start = random_start(pairs, studied)
    before, after = (agreement(studied, pairs, POINT, bases).score for bases in (start, learned))
    assert after > before + 0.1
    assert after > 0.65
    unseen = interchange_pairs(with_itself, "previous", interchangeable_positions(with_itself, "previous"), seed=0)
    assert agreement(with_itself.learned, unseen, POINT, learned).score > before + 0.05


def test_bases_are_orthonormal(learned, pairs, with_itself):
    assert sorted(learned) == pairs.positions
    for basis in learned.values():
        assert basis.shape == (with_itself.learned.model.cfg.d_model, RANK)
        np.testing.assert_allclose(basis.T @ basis, np.eye(RANK), atol=1e-5)


def test_where_the_variable_is_not_nothing_is_learned(with_noise):
    """The negative control: an untrained model, however long one searches."""
    pairs = interchange_pairs(
        with_noise.fitting, "previous", interchangeable_positions(with_noise, "previous"), seed=0
    )
    studied = with_noise.fitting.learned
    found = distributed_alignment_search(studied, pairs, POINT, {}, seed=0, steps=50)
    assert agreement(studied, pairs, POINT, found).score < 0.4


def test_a_subspace_that_is_right_already_is_not_lost(with_itself, pairs):
    start = mapped_subspaces(representations(with_itself), "previous", POINT)
    studied = with_itself.fitting.learned
    found = distributed_alignment_search(studied, pairs, POINT, start, seed=0, steps=50)
    assert agreement(studied, pairs, POINT, found).score > 0.85


def test_the_model_stays_as_it_is(with_itself, pairs):
    studied = with_itself.fitting.learned
    before = {name: value.clone() for name, value in studied.model.named_parameters()}
    distributed_alignment_search(studied, pairs, POINT, {}, seed=0, steps=50)
    for name, value in studied.model.named_parameters():
        assert (value == before[name]).all()
        assert value.grad is None


def test_a_start_is_filled_up_to_one_rank():
    """In the coordinates of each position's own axes."""
    axes = {
        position: np.linalg.qr(np.random.default_rng(position).normal(size=(20, 12)))[0] for position in (1, 3, 5)
    }
    start = {3: axes[3][:, :11], 5: axes[5][:, :2]}
    directions, coordinates = _start(start, axes, seed=0)
    assert directions.shape == (3, 20, 12)
    assert coordinates.shape == (3, 12, 11)
    np.testing.assert_allclose(directions[1] @ coordinates[1], start[3], atol=1e-12)
    np.testing.assert_allclose((directions[2] @ coordinates[2])[:, :2], start[5], atol=1e-12)
    assert np.abs(coordinates[2][:, 2:]).min() > 0
    few = _start({}, {0: axes[1][:, :5], 2: axes[3]}, seed=0)
    assert few[1].shape == (2, 12, 5)  # never more than a position has directions
    assert (few[1][0, 5:] == 0).all()


def test_nothing_is_sought_where_the_stream_does_not_vary(with_itself, pairs, learned):
    """Directions that nothing is ever written to would come to life by the interchange alone."""
    studied = with_itself.fitting.learned
    for position, basis in learned.items():
        stream = studied.residual(POINT)[:, position].astype(np.float64)
        axes = principal_axes(stream)
        assert axes.shape[1] < basis.shape[0]
        np.testing.assert_allclose(axes @ (axes.T @ basis), basis, atol=1e-5)
        other = np.linalg.qr(np.random.default_rng(0).normal(size=basis.shape))[0]
        assert not np.allclose(axes @ (axes.T @ other), other, atol=1e-2)  # the negative control


def test_principal_axes_turn_with_the_stream():
    rng = np.random.default_rng(0)
    stream = rng.exponential(size=(200, 3)) @ np.diag([5.0, 2.0, 1.0])
    wide = np.pad(stream, ((0, 0), (0, 4)))
    rotation = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    axes = principal_axes(wide)
    assert axes.shape == (7, 3)
    np.testing.assert_allclose(principal_axes(wide @ rotation), rotation.T @ axes, atol=1e-9)
    assert ((wide - wide.mean(axis=0)) @ axes).std(axis=0).argsort().tolist() == [2, 1, 0]
    assert (((wide - wide.mean(axis=0)) @ axes) ** 3).sum(axis=0).min() > 0
    assert principal_axes(np.ones((5, 4))).shape == (4, 0)


def test_the_seed_says_where_it_starts(with_itself, pairs, learned):
    again, other = (
        distributed_alignment_search(with_itself.fitting.learned, pairs, POINT, {}, seed=s, steps=50)
        for s in (0, 1)
    )
    position = pairs.positions[0]
    np.testing.assert_allclose(again[position], learned[position], atol=1e-6)
    assert not np.allclose(other[position], learned[position], atol=1e-2)
