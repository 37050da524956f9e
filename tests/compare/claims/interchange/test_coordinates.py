"""Whitened coordinates: every change of basis is a rotation there."""

import numpy as np
import pytest

from rasplens.compare.claims.interchange.coordinates import NOISE, READ, SPREAD, whitened
from rasplens.model.interventions import whole


@pytest.fixture(scope="module")
def stream():
    """Three directions with other spreads, skewed, in a stream of seven."""
    rng = np.random.default_rng(0)
    narrow = rng.exponential(size=(200, 3)) @ np.diag([5.0, 2.0, 1.0])
    return np.pad(narrow, ((0, 0), (0, 4)))


def oblique(width, seed=1):
    return np.random.default_rng(seed).normal(size=(width, width))


def test_the_stream_has_unit_spread_there_and_comes_back(stream):
    own = whitened(stream)
    coordinates = (stream - stream.mean(axis=0)) @ own.to
    np.testing.assert_allclose(coordinates.T @ coordinates / len(stream), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(coordinates @ own.back, stream - stream.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(own.back @ own.to, np.eye(3), atol=1e-9)


def test_directions_without_spread_are_left_out(stream):
    assert whitened(stream).n_axes == 3
    assert whitened(np.ones((5, 4))).n_axes == 0
    rounding = stream + 0.1 * SPREAD * np.random.default_rng(2).normal(size=stream.shape)
    assert whitened(rounding).n_axes == 3
    more = stream + 100 * SPREAD * np.random.default_rng(2).normal(size=stream.shape)
    assert whitened(more).n_axes == 7  # the negative control
    own = whitened(stream)
    assert np.abs(own.to[3:]).max() < 1e-9
    assert np.abs(own.back[:, 3:]).max() < 1e-9


def test_coordinates_are_the_same_in_any_basis(stream):
    """Axis by axis: what is drawn or searched for in them does not depend on how weights are written."""
    centred = stream - stream.mean(axis=0)
    for change in (oblique(7), np.linalg.qr(oblique(7))[0]):
        turned = stream @ change
        np.testing.assert_allclose(
            (turned - turned.mean(axis=0)) @ whitened(turned).to, centred @ whitened(stream).to, atol=1e-7
        )
    # The widest first, as it would be without: another order in another basis, and other axes where spreads tie.
    widest = [np.linalg.svd(part, full_matrices=False)[0] for part in (centred, centred @ oblique(7))]
    assert not np.allclose(*map(np.abs, widest), atol=0.1)


def test_they_turn_with_the_stream(stream):
    rotation = np.linalg.qr(oblique(7))[0]
    own, turned = whitened(stream), whitened(stream @ rotation)
    np.testing.assert_allclose(turned.to, rotation.T @ own.to, atol=1e-9)
    np.testing.assert_allclose(turned.back, own.back @ rotation, atol=1e-9)


def test_an_oblique_change_of_basis_is_none_there(stream):
    change = oblique(7)
    own, other = whitened(stream), whitened(stream @ change)
    np.testing.assert_allclose(own.back @ change @ other.to, np.eye(3), atol=1e-7)
    assert np.linalg.norm(change[:3], axis=1).std() > 0.1  # in the stream itself it is none


def test_a_projection_goes_with_an_oblique_change_of_basis(stream):
    """The same subspace in both bases takes the same part of the same activation."""
    change, rng = oblique(7), np.random.default_rng(3)
    own, other = whitened(stream), whitened(stream @ change)
    basis = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    one, same = own.subspace(basis), other.subspace((own.back @ change @ other.to).T @ basis)
    difference = stream[:50] - stream[50:100]
    part = difference @ one.read @ one.write.T
    np.testing.assert_allclose(difference @ change @ same.read @ same.write.T, part @ change, atol=1e-8)
    # An orthogonal projection, in the streams themselves, does not.
    plain, turned = (np.linalg.qr(written)[0] for written in (one.write, same.write))
    apart = difference @ change @ turned @ turned.T - difference @ plain @ plain.T @ change
    assert np.abs(apart).max() > 0.1


def test_a_subspace_reads_what_it_writes(stream):
    one = whitened(stream).subspace(np.linalg.qr(np.random.default_rng(3).normal(size=(3, 2)))[0])
    assert one.rank == 2
    np.testing.assert_allclose(one.write.T @ one.read, np.eye(2), atol=1e-9)
    projection = one.read @ one.write.T
    np.testing.assert_allclose(projection @ projection, projection, atol=1e-9)
    assert one.first(1).rank == 1
    np.testing.assert_array_equal(one.first(1).read, one.read[:, :1])
    np.testing.assert_array_equal(one.first(1).write, one.write[:, :1])


def test_a_whole_activation_or_a_part_of_it():
    activation = np.arange(5.0)[None]
    for part, expected in ((whole(5), [0, 1, 2, 3, 4]), (whole(5, slice(1, 3)), [0, 1, 2, 0, 0])):
        np.testing.assert_array_equal(activation @ part.read @ part.write.T, [expected])
    assert whole(5, slice(1, 3)).rank == 2


def test_directions_that_few_inputs_vary_along_have_axes_too():
    """One input alone tells the third direction from the others, and the last one comes late."""
    stream = np.random.default_rng(0).normal(size=(30, 4))
    stream[:-1, 2] = stream[:-1, 1]
    own = whitened(stream)
    assert own.n_axes == 4
    np.testing.assert_allclose(own.back @ own.to, np.eye(4), atol=1e-9)
    spread = ((stream - stream.mean(axis=0)) @ own.to).std(axis=0)
    np.testing.assert_allclose(spread, 1, atol=1e-9)


@pytest.fixture
def noisy():
    """Wide and read, wide and not read, narrow and read, narrow and hardly read, narrow and not read."""
    widths = np.array([1.0, 1.0, NOISE / 3, NOISE / 3, NOISE / 3])
    effects = np.array([1.0, 0.0, 10 * READ, READ / 10, 0.0])
    drawn = np.random.default_rng(0).normal(size=(300, 5))
    stream = np.linalg.qr(drawn - drawn.mean(axis=0))[0] * widths
    return stream, np.diag(effects / widths)


def test_what_is_narrow_and_not_read_is_noise(noisy):
    stream, read = noisy
    own = whitened(stream, read)
    assert (own.n_axes, own.read.shape[1]) == (3, 2)
    assert np.abs(own.to[3:] * NOISE).max() < 1e-6
    reading = own.to @ own.read  # of the stream, each as strongly as it is wide
    assert np.linalg.norm(reading[1]) < 1e-6
    assert min(np.linalg.norm(reading[0]), np.linalg.norm(reading[2]) * NOISE) > 1
    assert whitened(stream).n_axes == 5  # the negative control: all of it counts as read
    assert whitened(stream, 0 * read).n_axes == 2  # where nothing is read, what is wide is left


def test_what_is_read_goes_with_any_basis(noisy):
    """A change that is no larger than noise is narrow leaves the same axes, and the same of them is read."""
    stream, read = noisy
    own = whitened(stream, read)
    for change in (np.linalg.qr(oblique(5))[0], np.diag([1.0, 2.0, 3.0, 1.0, 2.0]) @ np.linalg.qr(oblique(5))[0]):
        other = whitened(stream @ change, np.linalg.inv(change) @ read)
        mine, theirs = (one.to @ one.read @ one.read.T @ one.back for one in (own, other))
        np.testing.assert_allclose(change @ theirs, mine @ change, atol=1e-6)
        assert other.n_axes == own.n_axes
