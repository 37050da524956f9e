"""Evaluation against plain arithmetic on the models themselves, and of maps of which all is known."""

import numpy as np
import pytest

from rasplens.learned.compressor.compressed_model import compressed_by
from rasplens.learned.compressor.evaluation import baseline, evaluate, feature_table
from rasplens.learned.compressor.examples import examples


def keeping(compiled, labels):
    """The map that keeps some features and drops all others."""
    everything = compressed_by(compiled, np.eye(compiled.transformer.config.d_model))
    return compressed_by(compiled, everything.projection[:, [everything.labels.index(label) for label in labels]])


@pytest.mark.slow
@pytest.mark.parametrize("which", ["narrow_frac", "narrow_unique"])
def test_accuracy_is_that_of_its_answers_sequence_by_sequence(which, request):
    model = request.getfixturevalue(which)
    compiled, right, whole = model.compiled, [], []
    for sequence in compiled.inputs:
        wanted = compiled.interpret(sequence)
        got = model.answers([sequence])[0]
        own = [one == pytest.approx(other) for one, other in zip(wanted, got, strict=True) if one is not None]
        right += own
        whole.append(all(own))
    found = evaluate(model)
    assert found.n_inputs == len(whole)
    assert found.token == pytest.approx(np.mean(right))
    assert found.sequence == pytest.approx(np.mean(whole))


def test_what_a_program_needs_is_enough_and_without_it_the_program_fails(frac):
    needed = ["tokens:x", "is_x", "frac_prevs", "BOS", *(f"indices:{i}" for i in range(4))]
    found = evaluate(keeping(frac, needed))
    assert found.token == 1
    assert found.loss == pytest.approx(0, abs=1e-8)
    assert found.cosine == pytest.approx(1)
    without = evaluate(keeping(frac, [label for label in needed if label != "is_x"]))
    assert without.token < 0.6
    assert without.layers.set_index("point").loc["blocks.0.hook_mlp_out", "cosine"] == pytest.approx(1)
    assert without.layers.set_index("point").loc["blocks.1.hook_attn_out", "loss"] > 0.05


@pytest.mark.slow
def test_the_loss_of_a_layer_is_the_mean_squared_error_of_what_it_writes(narrow_frac):
    on = examples(narrow_frac.compiled)
    full = on.real.all(axis=1)  # inputs of full length need no mask of their own
    small, wide = narrow_frac.transformer, narrow_frac.compiled.transformer
    _, ours = small.run_with_cache(on.tokens[full])
    _, theirs = wide.run_with_cache(on.tokens[full])
    point = "blocks.1.attn.hook_z"
    output = wide.weights["blocks.1.attn.W_O"][0]
    off = (ours[point][:, :, 0] - theirs[point][:, :, 0]) @ output
    on_full = type(on)(on.tokens[full], on.real[full], False)
    found = evaluate(narrow_frac, on_full).layers.set_index("point")
    assert found.loc["blocks.1.hook_attn_out", "loss"] == pytest.approx((off**2).sum(axis=-1).mean(), rel=1e-3)


def test_features_are_kept_dropped_or_shared(frac):
    wide = compressed_by(frac, np.eye(frac.transformer.config.d_model))
    assert set(feature_table(wide)["fate"]) == {"apart"}
    projection = np.eye(len(wide.labels))[:, :5]
    projection[6] = projection[2]  # the same direction as tokens:x
    table = feature_table(compressed_by(frac, projection)).set_index("feature")
    shared = wide.labels[6]
    assert table.loc["tokens:x", ["fate", "partner"]].tolist() == ["shared", shared]
    assert table.loc[shared, "cosine"] == pytest.approx(1)
    assert table.loc["tokens:a", "fate"] == "apart"
    assert table.loc["frac_prevs", "fate"] == "dropped"
    assert table["kept"].tolist() == pytest.approx([1, 1, 1, 1, 1, 0, 1, *[0] * (len(table) - 7)])


def test_a_categorical_variable_that_became_a_number_shows_it(unique):
    """Rows of target_pos on a line, in order: one direction; as they were: as many as there are values."""
    wide = compressed_by(unique, np.eye(unique.transformer.config.d_model))
    variable = unique.variables["target_pos"]
    before = evaluate(wide).variables.set_index("variable").loc["target_pos"]
    assert before["cosine"] == pytest.approx(1)
    assert before["one_direction"] == pytest.approx(0.5)
    projection = np.array(wide.projection)
    projection[variable.directions] = 0
    projection[variable.directions, variable.directions[0]] = [float(value) for value in variable.values]
    after = evaluate(compressed_by(unique, projection)).variables.set_index("variable").loc["target_pos"]
    assert after["one_direction"] == pytest.approx(1)
    assert after["ordered"] == pytest.approx(1)


def test_the_baseline_is_as_wide_and_worse(narrow_frac):
    other = baseline(narrow_frac)
    assert other.d == narrow_frac.d
    np.testing.assert_allclose(other.projection.T @ other.projection, np.eye(other.d), atol=1e-6)
    assert evaluate(other).token < evaluate(narrow_frac).token


def test_all_of_it_is_json(narrow_unique):
    import json

    values = json.loads(json.dumps(evaluate(narrow_unique).to_dict(), allow_nan=False))
    assert {"token", "layers", "variables", "features"} < set(values)
    assert values["features"][0]["feature"] == "tokens:1"
