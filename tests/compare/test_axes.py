"""The scale of the evidence, and its intervals."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from known_interchanges import known_interchange

from rasplens.compare.axes import (
    AXES,
    Axis,
    ablation_axis,
    above,
    attention_axis,
    behaviour_axis,
    bootstrapped,
    interchange_axis,
    subspaces_axis,
    without_score,
)
from rasplens.compare.claims.answers import behaviour
from rasplens.compare.evidence.ablation.edges import edge_effects
from rasplens.compare.evidence.ablation.measurement import Effects
from rasplens.compare.evidence.attention.heads import head_similarities
from rasplens.compare.evidence.subspaces.decodability import decodability


def test_the_scale_goes_from_the_control_to_one():
    assert above(0.6, 0.2) == pytest.approx(0.5)
    assert above(1.0, 0.7) == 1
    assert above(0.3, 0.3) == 0
    assert above(0.1, 0.3) == 0  # no worse than nothing
    np.testing.assert_allclose(above(np.array([0.5, 1.0, 0.0]), 0.0), [0.5, 1, 0])
    assert np.isnan(above(float("nan"), 0.2))


def test_a_control_at_the_ceiling_leaves_no_room():
    assert above(1.0, 1.0) == 0
    assert above(0.999, 1.0) == 0


DRAWS = 400
"""Bootstrap samples of each interval."""


def mean_axis(values, seed=0):
    return bootstrapped(
        "behaviour", "", len(values), lambda weights: weights @ values / weights.sum(axis=1), seed, DRAWS
    )


def test_an_interval_covers_its_score_and_shrinks_with_inputs():
    rng, widths = np.random.default_rng(0), {}
    for n in (25, 400):
        values = rng.random(n)
        axis = mean_axis(values)
        assert axis.score == pytest.approx(values.mean())
        assert axis.low <= axis.score <= axis.high
        widths[n] = axis.high - axis.low
        # Of a mean: 1.96 standard errors on either side.
        assert widths[n] == pytest.approx(2 * 1.96 * values.std() / np.sqrt(n), rel=0.25)
    assert widths[400] < 0.4 * widths[25]


def test_an_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(1)
    axes = [mean_axis((rng.random(80) < 0.6).astype(float), seed) for seed in range(200)]
    share = np.mean([axis.low <= 0.6 <= axis.high for axis in axes])
    assert 0.88 < share < 0.99
    assert np.mean([axis.low <= 0.75 <= axis.high for axis in axes]) < 0.4  # the negative control


def test_without_variation_there_is_no_width():
    axis = mean_axis(np.full(30, 0.7))
    assert axis.low == pytest.approx(axis.high) == pytest.approx(0.7)


def test_the_seed_gives_the_interval_and_not_the_score():
    values = np.random.default_rng(0).random(50)
    first, again, other = (mean_axis(values, seed) for seed in (0, 0, 1))
    assert first == again
    assert other.score == first.score
    assert (other.low, other.high) != (first.low, first.high)


def test_an_axis_without_a_score_has_no_score():
    axis = mean_axis(np.full(20, np.nan))
    assert not axis.has_score
    assert axis.to_dict()["score"] is None
    assert without_score("attention", "why").note == "why"
    assert Axis("behaviour", 0.0, 0.0, 0.0, "").has_score


def test_behaviour_by_hand(with_noise):
    found = behaviour(with_noise, seed=0)
    axis = behaviour_axis(found, 0, DRAWS)
    learned, untrained = found.agrees.mean(axis=1)
    assert axis.score == pytest.approx(max(0, (learned - untrained) / (1 - untrained)))
    assert axis.score < 0.15


def test_behaviour_on_few_inputs_has_no_score_and_says_why(with_noise):
    found = behaviour(with_noise, seed=0)
    nothing = replace(found, agrees=found.agrees[:, :0])
    assert "none of the task's answers" in behaviour_axis(nothing, 0, DRAWS).note
    few = replace(nothing, table=found.table.assign(inputs="all inputs"))
    assert "too few inputs are held out" in behaviour_axis(few, 0, DRAWS).note


def interchange(iia, specificity, random=0.0, untrained=0.0, name="x"):
    return known_interchange(name, iia, specificity, random=random, untrained=untrained)


def test_interchange_is_that_of_the_worst_variable_above_its_best_control():
    one = interchange([1, 1, 1, 0] * 5, [1] * 20, random=0.5, untrained=0.25)
    two = interchange([1] * 10, [1] * 10, name="y")
    assert interchange_axis([one], 0, DRAWS).score == pytest.approx(0.5)
    assert interchange_axis([one, two], 0, DRAWS).score == pytest.approx(0.5)
    assert interchange_axis([two], 0, DRAWS).score == 1
    assert interchange_axis([replace(one, untrained=0.75)], 0, DRAWS).score == 0
    spoiled = interchange([1] * 10, [0] * 10)
    assert interchange_axis([spoiled], 0, DRAWS).score == 0  # everything changes, also what must not
    assert not interchange_axis([], 0, DRAWS).has_score


def test_variables_with_different_numbers_of_pairs_are_drawn_each_from_its_own():
    """The interval of two variables together covers their score, the lower of both."""
    rng = np.random.default_rng(0)
    short = interchange((rng.random(12) < 0.5).astype(float), np.ones(12))
    long = interchange((rng.random(100) < 0.5).astype(float), np.ones(100), name="y")
    axis = interchange_axis([short, long], 0, DRAWS)
    assert axis.low <= axis.score <= axis.high
    assert axis.score == min(interchange_axis([one], 0, DRAWS).score for one in (short, long))
    assert axis.low < axis.high


def test_a_variable_whose_control_leaves_no_room_is_named_as_left_out():
    scored, without = interchange([1] * 10, [1] * 10), interchange([1] * 10, [1] * 10, random=0.995, name="y")
    axis = interchange_axis([scored, without], 0, DRAWS)
    assert axis.score == 1
    assert re.search(r"\bof x, .*; for y ", axis.note)
    assert not interchange_axis([without], 0, DRAWS).has_score


def test_attention_is_that_of_the_worst_head_and_nothing_without_a_match(with_itself):
    found = head_similarities(with_itself.scored, 0)
    assert attention_axis(with_itself.scored, found, 0).score == pytest.approx(1, abs=1e-5)
    without = replace(found, by_input={head: both for head, both in found.by_input.items() if head == (0, 0)})
    assert attention_axis(with_itself.scored, without, 0).score == 0
    half = found.by_input[1, 0]
    half = replace(half, similarity=(half.similarity + half.uniform) / 2)
    worst = attention_axis(with_itself.scored, replace(found, by_input={**found.by_input, (1, 0): half}), 0)
    assert worst.score == pytest.approx(0.5, abs=1e-5)


def test_attention_that_does_not_change_with_the_compiled_heads_scores_nothing(with_itself):
    found = head_similarities(with_itself.scored, 0)
    own = found.by_input[1, 0]
    still = replace(own, moments=own.moments * np.array([[0.0], [1.0], [0.0]]))
    assert (
        attention_axis(with_itself.scored, replace(found, by_input={**found.by_input, (1, 0): still}), 0).score
        == 0
    )
    twice = replace(own, moments=own.moments * np.array([[2.0], [1.0], [4.0]]))  # it changes twice as much
    axis = attention_axis(with_itself.scored, replace(found, by_input={**found.by_input, (1, 0): twice}), 0)
    assert axis.score == pytest.approx(0.8)


def effects(drop):
    n = len(drop)
    table = pd.DataFrame({"query": np.arange(n), "key": np.zeros(n, dtype=int), "zero": np.mean(drop, axis=1)})
    return Effects(table, {"zero": np.asarray(drop, dtype=float)})


def test_ablation_is_a_cosine_above_that_of_permuted_rows(with_itself):
    own, other = edge_effects(with_itself.scored.reference), edge_effects(with_itself.scored.untrained)
    assert ablation_axis(with_itself.scored, own, own, 0).score == pytest.approx(1)
    unlike = ablation_axis(with_itself.scored, own, other, 0)
    assert unlike.score < 0.3
    assert unlike.low <= unlike.score <= unlike.high
    nothing = Effects(own.table, {"zero": np.zeros_like(own.drops["zero"])})
    assert ablation_axis(with_itself.scored, own, nothing, 0).score == 0
    assert not ablation_axis(with_itself.scored, nothing, own, 0).has_score


def test_subspaces_by_hand(with_noise):
    found = decodability(with_noise, 0)
    from rasplens.compare.evidence.subspaces.decodability import best_points

    axis = subspaces_axis(found, ["previous"], 0, DRAWS)
    (best,) = best_points(found.table[found.table["variable"] == "previous"]).itertuples()
    control = max(best.chance, best.shuffled, best.untrained)
    assert axis.score == pytest.approx(max(0, (best.score - control) / (1 - control)))
    assert axis.low <= axis.score <= axis.high
    assert not subspaces_axis(found, [], 0, DRAWS).has_score


def test_subspaces_of_a_model_against_itself_are_at_the_ceiling(with_itself):
    assert subspaces_axis(decodability(with_itself, 0), ["previous"], 0, DRAWS).score == 1


def test_there_are_five_axes():
    assert len(set(AXES)) == 5
