import numpy as np
import pytest

from rasplens.compare import compare
from rasplens.compare.figures import EXAMPLES, best_matches, figures
from rasplens.compile import compile_program
from rasplens.learned import Architecture, untrained
from rasplens.model.circuits import full_ov_circuit


@pytest.fixture(scope="module")
def made(induction, noise, task):
    comparison = compare(induction, noise, task=task, n_inputs=60)
    return comparison, figures(comparison)


def test_every_figure_is_there(made):
    _, shown = made
    axes = ["decodability", "attention", "heads", "edges_zero", "edges_mean"]
    assert list(shown) == ["program", *axes, "ov", "qk", "residual_stream"]


def test_attention_shows_compiled_beside_learned_one_input_at_a_time(made):
    comparison, shown = made
    figure = shown["attention"]
    assert len(figure.data) == 2 * 2 * EXAMPLES
    assert [trace.visible for trace in figure.data] == [None] * 4 + [False] * 4 * (EXAMPLES - 1)
    buttons = figure.layout.updatemenus[0].buttons
    assert len(buttons) == EXAMPLES
    for i, button in enumerate(buttons):
        visible = button.args[0]["visible"]
        assert [place for place, is_shown in enumerate(visible) if is_shown] == list(range(4 * i, 4 * i + 4))
    (layer, head) = best_matches(comparison)[0, 0]
    learned = comparison.pairing.learned.pattern(layer)[0, head]
    np.testing.assert_allclose(np.array(figure.data[1].z, dtype=float), learned, atol=1e-4)
    assert "0: " in buttons[1].args[1]["xaxis.ticktext"][0]


def test_decodability_cells_are_the_score_above_the_best_control(made):
    comparison, shown = made
    row = comparison.decodability.iloc[-1]
    panel = shown["decodability"].data[-1]
    variables = list(dict.fromkeys(comparison.decodability["variable"]))
    cell = float(panel.z[variables.index(row["variable"])][row["position"]])
    assert cell == pytest.approx(row["score"] - max(row["chance"], row["shuffled"], row["untrained"]), abs=1e-4)


def test_circuits_are_the_learned_models(made):
    comparison, shown = made
    assert len(shown["ov"].data) == 4
    assert len(shown["qk"].data) == 2 * 4
    model = comparison.pairing.learned.model.to_transformer()
    circuit = np.array(shown["ov"].data[2].z, dtype=float)
    np.testing.assert_allclose(circuit, full_ov_circuit(model, 1, 0), atol=1e-4)


def test_smeared_keys_have_no_qk_figure(task):
    compiled = compile_program(task.programs["offset"], task.vocab, task.n_ctx, mask=task.visible)
    smeared = untrained(Architecture(1, 1, 8, 8, positions="sinusoidal_qk", smeared_keys=True), task, 0)
    assert "qk" not in figures(compare(compiled, smeared, task=task, n_inputs=60))


def test_a_model_with_layer_norm_is_compared_without_figures_of_its_weights(offset, task):
    architecture = Architecture(2, 2, 12, 6, normalization="LN", bias=True, d_mlp=8)
    comparison = compare(offset, untrained(architecture, task, 0), task=task, n_inputs=100)
    assert {"ov", "qk"} & set(figures(comparison)) == set()
    assert {"attention", "heads", "decodability"} <= set(figures(comparison))
