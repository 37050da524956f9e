from functools import partial
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from rasplens.compare.evidence.ablation import profiles
from rasplens.compare.evidence.ablation.measurement import Effects
from rasplens.compare.evidence.ablation.profiles import critical_overlap, edge_profile, resampled_similarity

correlate = partial(profiles.correlate, permutations=1_000)
matched_profiles = partial(profiles.matched_profiles, seed=0, permutations=1_000)


def edges(values, layer=0) -> pd.DataFrame:
    """Effects of the causal edges of six positions, row by row."""
    places = [(query, key) for query in range(6) for key in range(query + 1)]
    rows = [(layer, query, key, value, value) for (query, key), value in zip(places, values, strict=True)]
    return pd.DataFrame(rows, columns=["layer", "query", "key", "zero", "mean"])


SEES = np.tri(6, dtype=bool)


def alike(first, second, weights):
    """The similarity of two profiles of the causal edges, without its control."""
    return resampled_similarity(first, second, "zero", weights, SEES, 0)[0]


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


def test_edges_that_one_model_lacks_count_as_without_effect():
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


def test_critical_edges_that_both_share_are_counted_against_chance():
    """By hand: 21 edges, 4 and 3 critical ones, 2 of them the same."""
    first, second = np.zeros(21), np.zeros(21)
    first[[0, 3, 7, 20]], second[[3, 7, 9]] = 0.5, 0.02
    found = critical_overlap(edges(first), edges(second), "zero")
    assert (found.shared, found.either) == (2, 5)
    assert found.expected == pytest.approx(4 * 3 / 21)
    two, three = comb(4, 2) * comb(17, 1), comb(4, 3)
    assert found.p == pytest.approx((two + three) / comb(21, 3))
    apart = critical_overlap(edges(first), edges(np.roll(first, 5)), "zero")
    assert apart.shared == 0
    assert apart.p == 1


def test_an_edge_that_costs_a_hundredth_is_not_yet_critical():
    values = np.full(21, 0.01)
    assert critical_overlap(edges(values), edges(values), "zero").either == 0
    assert critical_overlap(edges(values + 1e-6), edges(values), "zero").either == 21


def test_models_without_edges_share_none():
    none = edges(RANDOM).iloc[:0]
    found = critical_overlap(none, none, "zero")
    assert (found.shared, found.either, found.expected, found.p) == (0, 0, 0, 1)


def effects(drop: np.ndarray, layer: int = 0) -> Effects:
    """Effects of the causal edges on each of some inputs: `[edge, input]`."""
    return Effects(edges(drop.mean(axis=1), layer), {"zero": drop})


DROPS = np.random.default_rng(2).random((21, 30)) * np.linspace(0.1, 1, 21)[:, None]


def test_the_weighted_similarity_is_the_cosine_of_the_profiles_on_those_inputs():
    other = np.random.default_rng(3).random((21, 30))
    weights = np.array([np.ones(30), np.arange(30.0)])
    found = alike(effects(DROPS), effects(other), weights)
    for weight, score in zip(weights, found, strict=True):
        a, b = DROPS @ weight, other @ weight
        assert score == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert found[0] != pytest.approx(found[1])


def test_a_profile_is_wholly_like_itself_and_unlike_its_opposite():
    ones = np.ones((1, 30))
    assert alike(effects(DROPS), effects(3 * DROPS), ones) == pytest.approx(1)
    assert alike(effects(DROPS), effects(DROPS[::-1] ** 3), ones) < 0.99
    sparse, elsewhere = np.zeros((21, 30)), np.zeros((21, 30))
    sparse[2], elsewhere[5] = 1, 1
    assert alike(effects(sparse), effects(elsewhere), ones) == 0


def test_edges_that_one_model_lacks_have_no_effect_there():
    few = Effects(edges(DROPS.mean(axis=1)).iloc[:10], {"zero": DROPS[:10]})
    filled = DROPS.copy()
    filled[10:] = 0
    ones = np.ones((1, 30))
    assert alike(effects(DROPS), few, ones) == pytest.approx(alike(effects(DROPS), effects(filled), ones))


def test_of_several_layers_the_largest_counts():
    both = Effects(
        pd.concat([edges(DROPS.mean(axis=1)), edges(2 * DROPS.mean(axis=1), layer=1)], ignore_index=True),
        {"zero": np.concatenate([DROPS, 2 * DROPS])},
    )
    ones = np.ones((1, 30))
    assert alike(both, effects(DROPS), ones) == pytest.approx(1)
    shifted = Effects(both.table, {"zero": np.concatenate([DROPS, 3 * DROPS[::-1] ** 3])})
    assert alike(shifted, effects(DROPS), ones) < 0.99


def test_a_model_in_which_nothing_matters_has_no_similarity():
    nothing = effects(np.zeros((21, 30)))
    assert np.isnan(alike(effects(DROPS), nothing, np.ones((1, 30)))).all()


def test_the_control_is_what_the_rows_explain():
    same_rows = edges(np.concatenate([np.full(query + 1, float(query)) for query in range(6)]))
    flat = Effects(same_rows, {"zero": np.repeat(same_rows["zero"].to_numpy()[:, None], 30, axis=1)})
    similarity, control = resampled_similarity(flat, flat, "zero", np.ones((1, 30)), SEES, 0)
    assert similarity == pytest.approx(1)
    assert control == pytest.approx(1)  # within a row all keys have the same effect
    sharp = np.zeros((21, 30))
    sharp[[1, 4, 8, 13, 18]] = 1
    similarity, control = resampled_similarity(effects(sharp), effects(sharp), "zero", np.ones((1, 30)), SEES, 0)
    assert similarity == pytest.approx(1)
    assert control < 0.5


def heads_by_position(*profiles):
    """Effects of the heads of one layer at each position."""
    rows = [
        {"layer": 0, "head": head, "position": position, "zero": effect, "mean": effect, "resample": -effect}
        for head, profile in enumerate(profiles)
        for position, effect in enumerate(profile)
    ]
    return pd.DataFrame(rows)


MATCHED = pd.DataFrame([{"compiled_layer": 0, "compiled_head": 0, "variable": "v", "layer": 0, "head": 1}])
RISING, WAVES = np.arange(8.0), np.sin(np.arange(8.0) * 2)


def test_matched_heads_are_compared_with_each_other_and_with_the_others():
    found = matched_profiles(MATCHED, heads_by_position(RISING), heads_by_position(WAVES, RISING**2, -RISING))
    zero = found.set_index("method").loc["zero"]
    assert (zero["compiled"], zero["learned"], zero["n"]) == ("L0H0", "L0H1", 8)
    assert zero["rho"] == pytest.approx(1)  # only ranks count
    others = [spearmanr(RISING, other).statistic for other in (WAVES, -RISING)]
    assert zero["unmatched"] == pytest.approx(np.mean(others))
    assert zero["p"] < 0.01


def test_a_match_whose_positions_differ_does_not_correlate():
    found = matched_profiles(MATCHED, heads_by_position(RISING), heads_by_position(RISING, WAVES)).set_index(
        "method"
    )
    assert found.loc["zero", "rho"] == pytest.approx(spearmanr(RISING, WAVES).statistic)
    assert found.loc["zero", "p"] > 0.05
    assert found.loc["zero", "unmatched"] == pytest.approx(1)


def test_heads_with_the_same_effect_everywhere_have_no_correlation():
    flat = np.ones(8)
    assert matched_profiles(MATCHED, heads_by_position(flat), heads_by_position(RISING, WAVES)).empty
    assert matched_profiles(MATCHED, heads_by_position(RISING), heads_by_position(RISING, flat)).empty
    alone = matched_profiles(MATCHED, heads_by_position(RISING), heads_by_position(flat, RISING))
    assert alone["unmatched"].isna().all()
    assert matched_profiles(MATCHED[:0], heads_by_position(RISING), heads_by_position(WAVES)).empty
