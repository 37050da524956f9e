"""Indices of similarity: their laws, each with something that breaks it."""

import numpy as np
import pytest

from rasplens.compare.evidence.subspaces import similarity
from rasplens.compare.evidence.subspaces.similarity import LEAST_ROWS, centred_stream, stream_similarity


def of_rows(index):
    return lambda x, y: index(centred_stream(x), centred_stream(y))


cka, cca, procrustes = map(of_rows, (similarity.cka, similarity.cca, similarity.procrustes))

RNG = np.random.default_rng(0)


def centred(rows: np.ndarray) -> np.ndarray:
    return rows - rows.mean(axis=0)


X = centred(RNG.normal(size=(300, 6)) @ np.diag([3, 2, 1.5, 1, 0.8, 0.6]))
Y = centred(X[:, :4] @ RNG.normal(size=(4, 5)) + RNG.normal(size=(300, 5)))
ROTATION = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
STRETCH = np.diag([1, 9, 0.2, 4, 1, 7])


@pytest.mark.parametrize("index", [cka, cca])
def test_a_stream_is_wholly_like_itself_turned_and_scaled(index):
    assert index(X, X) == pytest.approx(1)
    assert index(X, 7 * X @ ROTATION) == pytest.approx(1)
    assert index(X, Y) == pytest.approx(index(Y, X))
    assert 0.1 < index(X, Y) < 0.95
    assert index(X, 3 * Y) == pytest.approx(index(X @ ROTATION, Y))
    assert index(X, X[RNG.permutation(300)]) < 0.2  # rows that do not belong together


def test_cka_is_not_invariant_under_stretching_and_cca_is():
    assert cka(X, X @ STRETCH) < 0.9
    full = X[:, :3]
    assert cca(full, full @ np.diag([1, 0.5, 2])) == pytest.approx(1)


def test_debiased_cka_of_noise_is_nought_however_wide():
    """The plain estimator is near 1 where there are more features than rows."""
    x, y = (centred(np.random.default_rng(seed).normal(size=(60, 500))) for seed in (1, 2))
    k, l = x @ x.T, y @ y.T  # noqa: E741
    plain = (k * l).sum() / np.sqrt((k * k).sum() * (l * l).sum())
    assert plain > 0.85
    assert abs(cka(x, y)) < 0.05


def test_cka_by_the_formula_of_the_unbiased_estimator():
    """Song et al. 2012, equation 5, with every sum over different rows written out."""
    x, y = centred(X[:7]), centred(Y[:7])
    n = 7

    def hsic(a, b):
        k, m = a @ a.T, b @ b.T
        rows = range(n)
        pairs = sum(k[i, j] * m[i, j] for i in rows for j in rows if i != j) / (n * (n - 1))
        triples = sum(k[i, j] * m[i, q] for i in rows for j in rows for q in rows if len({i, j, q}) == 3) / (
            n * (n - 1) * (n - 2)
        )
        fours = sum(
            k[i, j] * m[p, q] for i in rows for j in rows for p in rows for q in rows if len({i, j, p, q}) == 4
        ) / (n * (n - 1) * (n - 2) * (n - 3))
        return pairs - 2 * triples + fours

    assert cka(x, y) == pytest.approx(hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y)))


def test_cca_leaves_out_what_is_hardly_there():
    noisy = np.hstack([X, 1e-3 * RNG.normal(size=(300, 4))])
    assert cca(X, centred(noisy)) > 0.99
    loud = np.hstack([X, 3 * RNG.normal(size=(300, 4))])
    other = np.hstack([X, 3 * RNG.normal(size=(300, 4))])
    assert cca(centred(loud), centred(other)) < 0.8


def test_procrustes_is_a_distance_after_the_best_rotation():
    assert procrustes(X, X) == pytest.approx(0, abs=1e-9)
    assert procrustes(X, 5 * X @ ROTATION) == pytest.approx(0, abs=1e-9)
    assert procrustes(X, np.pad(X, ((0, 0), (0, 3)))) == pytest.approx(0, abs=1e-9)
    assert procrustes(X, Y) == pytest.approx(procrustes(Y, X))
    assert procrustes(X, X @ STRETCH) > 0.1
    third = centred(RNG.normal(size=(300, 5)))
    far = [np.sqrt(procrustes(a, b)) for a, b in ((X, third), (X, Y), (Y, third))]
    assert far[0] <= far[1] + far[2]
    apart = np.zeros((4, 1)), np.array([[1.0], [-1], [0], [0]])
    assert procrustes(apart[1], np.array([[0.0], [0], [1], [-1]])) == pytest.approx(2)


@pytest.mark.parametrize("n", [1, 2, 3, LEAST_ROWS])
def test_few_rows_say_what_they_can(n):
    x, y = X[:n], Y[:n]
    assert np.isnan(cka(x, y)) == (n < LEAST_ROWS)
    assert 0 <= cca(x, y) <= 1 + 1e-9
    assert 0 <= procrustes(x, y) <= 2


def test_a_shuffled_stream_is_that_of_shuffled_rows():
    order = RNG.permutation(300)
    both = centred_stream(Y).shuffled(order), centred_stream(Y[order])
    for index in (similarity.cka, similarity.cca, similarity.procrustes):
        assert index(centred_stream(X), both[0]) == pytest.approx(index(centred_stream(X), both[1]))


def test_streams_without_variance_are_like_nothing():
    flat = np.zeros((50, 3))
    assert cka(flat, X[:50]) == cca(flat, X[:50]) == 0
    assert np.isfinite(procrustes(flat, X[:50]))


def test_a_model_is_like_itself_point_by_point_and_not_when_inputs_are_shuffled(with_itself, with_noise):
    table = stream_similarity(with_itself.scored, seed=0)
    points = with_itself.learned.residual_points
    assert len(table) == len(points) ** 2
    same = table[table["compiled"] == table["learned"]]
    for name in ("cka", "cca"):
        np.testing.assert_allclose(same[name], 1, atol=1e-6)
        assert (same[f"{name}_shuffled"] < 0.5).all()
    np.testing.assert_allclose(same["procrustes"], 0, atol=1e-6)
    assert (same["procrustes_shuffled"] > 0.3).all()
    assert stream_similarity(with_noise.scored, seed=0)["cka"].max() < 0.99
    assert table.equals(stream_similarity(with_itself.scored, seed=0))
