import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from rasplens.compare.profiles import correlate, edge_profile


def edges(values, layer=0) -> pd.DataFrame:
    """Effects of the causal edges of six positions, row by row."""
    places = [(query, key) for query in range(6) for key in range(query + 1)]
    rows = [(layer, query, key, value, value) for (query, key), value in zip(places, values, strict=True)]
    return pd.DataFrame(rows, columns=["layer", "query", "key", "zero", "mean"])


RANDOM = np.random.default_rng(0).random(21)


def test_a_profile_correlates_perfectly_with_itself():
    found = correlate(edges(RANDOM), edges(RANDOM), "zero", seed=0)
    assert found.rho == pytest.approx(1)
    assert abs(found.within_rows) < 0.5
    assert found.p < 0.01
    assert found.n == 21


def test_only_ranks_count_and_their_direction():
    assert correlate(edges(RANDOM), edges(np.exp(5 * RANDOM)), "zero", 0).rho == pytest.approx(1)
    assert correlate(edges(RANDOM), edges(-RANDOM), "zero", 0).rho == pytest.approx(-1)


def test_what_rows_alone_explain_is_in_the_control():
    """Both profiles depend on the query only: keys carry nothing, and the control says so."""
    by_row = [query for query in range(6) for _ in range(query + 1)]
    found = correlate(edges(by_row), edges(by_row), "zero", seed=0)
    assert found.rho == pytest.approx(1)
    assert found.within_rows == pytest.approx(1)
    assert found.p == 1


def test_edges_that_one_model_lacks_count_as_worthless():
    found = correlate(edges(RANDOM), edges(RANDOM).iloc[:10], "zero", seed=0)
    filled = correlate(edges(RANDOM), edges(np.where(np.arange(21) < 10, RANDOM, 0)), "zero", seed=0)
    assert found == filled
    assert found.n == 21


def test_the_correlation_is_spearmans():
    other = np.random.default_rng(1).random(21)
    found = correlate(edges(RANDOM), edges(other), "zero", seed=0)
    assert found.rho == pytest.approx(spearmanr(RANDOM, other).statistic)


def test_permutations_that_change_nothing_reach_the_score():
    """One edge per row matters, the same in both: by chance all rows agree in 1 / (2·3·4·5·6) of the cases.

    Tied permutations once fell below the score by one rounding, which made p ten times too small.
    """
    sparse = [float(key == query and query < 3) for query in range(6) for key in range(query + 1)]
    found = correlate(edges(sparse), edges(sparse), "zero", seed=0)
    assert found.rho == pytest.approx(1)
    assert 1 / 6 / 1.5 < found.p < 1 / 6 * 1.5


def test_a_constant_profile_has_no_correlation():
    assert correlate(edges(RANDOM), edges([0.0] * 21), "zero", seed=0) is None
    assert correlate(edges(RANDOM).iloc[:2], edges(RANDOM).iloc[:2], "zero", seed=0) is None


def test_the_largest_effect_over_layers_is_taken():
    both = pd.concat([edges(RANDOM), edges(RANDOM + 1, layer=1)])
    np.testing.assert_allclose(edge_profile(both, "zero"), RANDOM + 1)
