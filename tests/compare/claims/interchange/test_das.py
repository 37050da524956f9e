"""Subspaces learned by gradient descent."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare import as_studied_model
from rasplens.compare.claims.interchange.coordinates import whitened
from rasplens.compare.claims.interchange.das import RANK, _start, distributed_alignment_search, padded
from rasplens.compare.claims.interchange.pairs import interchange_pairs
from rasplens.compare.claims.interchange.patching import agreement
from rasplens.compare.claims.interchange.sites import mapped_subspaces
from rasplens.compare.claims.interchange.stream_axes import stream_axes
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.model import disguise

POINT = "blocks.0.hook_resid_post"


@pytest.fixture(scope="module")
def pairs(with_itself):
    return interchange_pairs(
        with_itself.fitting, "previous", with_itself.interchangeable_positions("previous"), seed=0
    )


@pytest.fixture(scope="module")
def learned(with_itself, pairs):
    return distributed_alignment_search(with_itself.fitting.learned, pairs, POINT, {}, seed=0, steps=50).subspaces


def random_start(pairs, studied):
    return distributed_alignment_search(studied, pairs, POINT, {}, seed=0, steps=0).subspaces


def test_what_is_learned_is_better_than_where_it_started(with_itself, pairs, learned):
    studied = with_itself.fitting.learned
    start = random_start(pairs, studied)
    before, after = (agreement(studied, pairs, POINT, bases).score for bases in (start, learned))
    assert after > before + 0.1
    assert after > 0.65
    unseen = interchange_pairs(
        with_itself.scored, "previous", with_itself.interchangeable_positions("previous"), seed=0
    )
    assert agreement(with_itself.learned, unseen, POINT, learned).score > before + 0.05


@pytest.mark.parametrize("n_missing", [1, None])
def test_answers_that_the_model_has_no_logit_for_are_not_learned(with_itself, pairs, n_missing):
    """Such as None, which a compiled model says by having no logit that is large; with all missing, nothing is."""
    studied = with_itself.fitting.learned
    columns = studied.vocabulary.columns.copy()
    columns[:n_missing] = -1
    assert (pairs.expected == 0).any()
    mute = replace(studied, vocabulary=replace(studied.vocabulary, columns=columns))
    found = distributed_alignment_search(mute, pairs, POINT, {}, seed=0, steps=3)
    assert bool(found.subspaces) == (n_missing is not None)


def test_bases_are_orthonormal_where_the_stream_has_unit_spread(learned, pairs, with_itself):
    axes = stream_axes(with_itself.fitting.learned, POINT)
    assert sorted(learned) == pairs.positions
    for position, subspace in learned.items():
        assert subspace.read.shape == (with_itself.learned.model.cfg.d_model, RANK)
        basis = axes[position].back @ subspace.read
        np.testing.assert_allclose(basis.T @ basis, np.eye(RANK), atol=1e-5)
        np.testing.assert_allclose(subspace.write.T @ subspace.read, np.eye(RANK), atol=1e-5)


def test_where_the_variable_is_not_nothing_is_learned(with_noise, pairs):
    """The negative control: an untrained model, however long one searches, on the pairs of one that answers."""
    studied = with_noise.fitting.learned
    found = distributed_alignment_search(studied, pairs, POINT, {}, seed=0, steps=50).subspaces
    assert agreement(studied, pairs, POINT, found).score < 0.4


def test_a_subspace_that_is_right_already_is_not_lost(with_itself, pairs):
    studied = with_itself.fitting.learned
    start = mapped_subspaces(studied, representations(with_itself), "previous", POINT)
    found = distributed_alignment_search(studied, pairs, POINT, start, seed=0, steps=50).subspaces
    assert agreement(studied, pairs, POINT, found).score > 0.85


@pytest.mark.slow
def test_the_model_stays_as_it_is(with_itself, pairs):
    studied = with_itself.fitting.learned
    before = {name: value.clone() for name, value in studied.model.named_parameters()}
    distributed_alignment_search(studied, pairs, POINT, {}, seed=0, steps=50)
    for name, value in studied.model.named_parameters():
        assert (value == before[name]).all()
        assert value.grad is None


def test_a_start_is_filled_up_to_one_rank():
    """In the coordinates of each position's own axes."""
    streams = {position: np.random.default_rng(position).normal(size=(40, 20))[:, :12] for position in (1, 3, 5)}
    axes = {position: whitened(stream) for position, stream in streams.items()}
    mine = {position: np.linalg.qr(np.random.default_rng(9).normal(size=(12, 11)))[0] for position in axes}
    start = {3: axes[3].subspace(mine[3]), 5: axes[5].subspace(mine[5][:, :2])}
    (to, back), coordinates = padded(axes), _start(start, axes, seed=0)
    assert to.shape == (3, 12, 12)
    assert back.shape == (3, 12, 12)
    assert coordinates.shape == (3, 12, 11)
    np.testing.assert_allclose(to[1] @ coordinates[1], start[3].read, atol=1e-9)
    np.testing.assert_allclose((to[2] @ coordinates[2])[:, :2], start[5].read, atol=1e-9)
    np.testing.assert_allclose(back[1].T @ coordinates[1], start[3].write, atol=1e-9)
    assert np.abs(coordinates[2][:, 2:]).min() > 0
    narrow = np.random.default_rng(0).normal(size=(40, 5)) @ np.random.default_rng(1).normal(size=(5, 12))
    unlike = {0: whitened(narrow), 2: axes[3]}
    few = _start({}, unlike, seed=0)
    assert few.shape == (2, 12, 5)  # never more than a position has directions
    assert (few[0, 5:] == 0).all()
    assert (padded(unlike)[0][0, :, 5:] == 0).all()


def test_nothing_is_sought_where_the_stream_does_not_vary(with_itself, pairs, learned):
    """Directions that nothing is ever written to would come to life by the interchange alone."""
    studied = with_itself.fitting.learned
    for position, subspace in learned.items():
        own = stream_axes(studied, POINT)[position]
        assert own.n_axes < len(subspace.write)
        np.testing.assert_allclose(own.back.T @ (own.to.T @ subspace.write), subspace.write, atol=1e-5)
        other = np.linalg.qr(np.random.default_rng(0).normal(size=subspace.write.shape))[0]
        assert not np.allclose(own.back.T @ (own.to.T @ other), other, atol=1e-2)  # the negative control


@pytest.fixture(scope="module")
def in_both_bases(with_itself, induction, task):
    """The compiled model on the pairs' inputs, and in weights of an oblique basis."""
    twin = disguise(induction.transformer, seed=1, basis="oblique", extra_width=3)
    studied = as_studied_model(twin, task, with_itself.fitting.ids, vocabulary_of(induction, task))
    return with_itself.fitting.learned, studied


@pytest.mark.slow
def test_a_search_finds_as_much_in_an_oblique_basis(in_both_bases, pairs):
    """On average: from a random start, a search of this steep model ends here or there."""
    scores = [
        [
            agreement(
                one, pairs, POINT, distributed_alignment_search(one, pairs, POINT, {}, seed, 50).subspaces
            ).score
            for seed in range(5)
        ]
        for one in in_both_bases
    ]
    assert np.mean(scores[1]) == pytest.approx(np.mean(scores[0]), abs=0.1)
    assert np.mean(scores) > 0.7


@pytest.mark.slow
def test_a_search_goes_with_an_oblique_basis(with_itself, in_both_bases, pairs, monkeypatch):
    """From what the map finds it ends alike; the first steps, before rounding grows, are the same ones."""
    both = in_both_bases
    mapped = mapped_subspaces(both[0], representations(with_itself), "previous", POINT)
    axes = {position: [stream_axes(one, POINT)[position] for one in both] for position in mapped}
    start = {position: one.first(5) for position, one in mapped.items()}
    there = {
        position: axes[position][1].subspace(axes[position][0].back @ one.read) for position, one in start.items()
    }
    ends = [
        distributed_alignment_search(one, pairs, POINT, begin, seed=0, steps=20).score
        for one, begin in zip(both, (start, there), strict=True)
    ]
    assert ends[1] == pytest.approx(ends[0], abs=0.05)
    monkeypatch.setattr("rasplens.compare.claims.interchange.descent.MOST_TIMES", 1)
    first = [distributed_alignment_search(one, pairs, POINT, {}, seed=0, steps=2) for one in both]
    for position in pairs.positions:
        mine, theirs = (
            stream_axes(one, POINT)[position].back @ search.subspaces[position].read
            for one, search in zip(both, first, strict=True)
        )
        np.testing.assert_allclose(mine @ mine.T, theirs @ theirs.T, atol=1e-3)


@pytest.mark.slow
def test_the_seed_says_where_it_starts(with_itself, pairs, learned):
    again, other = (
        distributed_alignment_search(with_itself.fitting.learned, pairs, POINT, {}, seed=s, steps=50).subspaces
        for s in (0, 1)
    )
    position = pairs.positions[0]
    np.testing.assert_allclose(again[position].read, learned[position].read, atol=1e-6)
    assert not np.allclose(other[position].read, learned[position].read, atol=1e-2)


@pytest.mark.slow
def test_a_search_stops_by_pairs_that_it_does_not_learn_on(with_itself, pairs):
    """What it returns is the step that does best on these, however long it goes on."""
    studied = with_itself.fitting.learned
    few = pairs.of(np.arange(len(pairs.base)) < 60)
    third, others = few.of(np.arange(60) % 3 == 2), few.of(np.arange(60) % 3 < 2)
    searches = [
        distributed_alignment_search(studied, few, POINT, {}, seed=0, steps=steps) for steps in (0, 20, 100)
    ]
    scores = [found.score for found in searches]
    assert scores == sorted(scores)
    assert scores[-1] > scores[0]
    for found in searches:
        assert agreement(studied, third, POINT, found.subspaces).score == found.score
    longest = searches[-1]
    assert longest.fitted > searches[1].fitted + 0.05  # it goes on learning,
    # and does not return where that ends. How soon it stops getting better depends on the processor's rounding.
    assert agreement(studied, others, POINT, longest.subspaces).score < longest.fitted
