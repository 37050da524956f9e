from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rasplens.compare.comparison import Comparison
from rasplens.compare.report.figures.every_figure import figures
from rasplens.learned import Architecture, untrained
from rasplens.model.hooked import HookedModel
from rasplens.model.weight_circuits import full_ov_circuit

OVERLAPS = pd.DataFrame(
    [
        ("a", "b", "blocks.0.hook_resid_pre", 0, 1.0, 0.5, 0.5, 1.0),
        ("a", "c", "blocks.0.hook_resid_pre", 0, 1.0, 0.2, None, None),
    ],
    columns=["first", "second", "point", "position", "cosine", "shared", "correlation", "scale"],
)


@pytest.fixture(scope="module")
def made(floor):
    return floor, figures(floor)


def with_tables(comparison, **tables):
    return replace(comparison, tables={**comparison.tables, **tables})


def cells(trace):
    return np.array(trace.z, dtype=float)


def test_every_figure_is_there(made):
    _, shown = made
    methods = ["zero", "mean", "resample"]
    ablated = [
        "heads",
        *(f"head_positions_{method}" for method in methods),
        *(f"edges_{method}" for method in methods),
    ]
    first = ["claims", "evidence", "program", *ablated, "decodability"]
    last = ["similarity", "ov", "qk", "residual_stream"]
    assert [name for name in shown if name != "overlaps"] == [*first, *last]


@pytest.mark.slow
def test_a_loaded_comparison_has_the_figures_that_need_no_model(made, tmp_path):
    comparison, shown = made
    comparison.save(tmp_path / "c.json")
    loaded = figures(Comparison.load(tmp_path / "c.json"))
    assert set(shown) - set(loaded) == {"program", "ov", "qk", "residual_stream"}
    for name in ("edges_zero", "head_positions_mean", "decodability", "similarity"):
        for one, other in zip(loaded[name].data, shown[name].data, strict=True):
            np.testing.assert_array_equal(cells(one), cells(other))


def test_the_evidence_is_every_axis_with_its_interval(made):
    comparison, shown = made
    points = shown["evidence"].data[0]
    speaking = [axis for axis in comparison.axes if axis.has_score]
    assert sorted(points.y) == sorted(axis.name for axis in speaking)
    for name, x, up, down in zip(points.y, points.x, points.error_x.array, points.error_x.arrayminus, strict=True):
        axis = comparison.axis(name)
        assert (x, x + up, x - down) == pytest.approx((axis.score, axis.high, axis.low))


@pytest.mark.slow
def test_an_axis_without_a_score_is_shown_as_one(made):
    comparison, _ = made
    nan = float("nan")
    axes = tuple(replace(axis, score=nan) if axis.name == "attention" else axis for axis in comparison.axes)
    figure = figures(replace(comparison, axes=axes))["evidence"]
    assert "attention" not in figure.data[0].y
    assert [(note.y, note.text) for note in figure.layout.annotations] == [
        ("interchange", "no score"),
        ("attention", "no score"),
    ]
    assert "attention" in figure.layout.yaxis.categoryarray


def test_interchange_stands_beside_its_controls(ceiling):
    comparison, shown = ceiling, figures(ceiling)
    table = comparison.tables["interchange"]
    bars = {bar.name: list(bar.y) for bar in shown["interchange"].data}
    assert bars["learned model"] == table["score"].tolist()
    assert bars["its active part"] == table["active"].tolist()
    np.testing.assert_array_equal(bars["random subspaces"], table["random"])
    assert bars["untrained model"] == table["untrained"].tolist()
    assert list(shown["interchange"].data[0].x) == table["variable"].tolist()


@pytest.mark.slow
def test_overlaps_are_a_symmetric_table_with_nothing_on_its_diagonal(made):
    shown = figures(with_tables(made[0], overlaps=OVERLAPS))["overlaps"]
    np.testing.assert_array_equal(
        cells(shown.data[0]), [[np.nan, 0.5, 0.2], [0.5, np.nan, np.nan], [0.2, np.nan, np.nan]]
    )
    assert "overlaps" not in figures(with_tables(made[0], overlaps=pd.DataFrame()))


def test_similarity_is_the_tables_cka(made):
    comparison, shown = made
    table = comparison.tables["similarity"].pivot(index="compiled", columns="learned", values="cka")
    order = [f"blocks.{layer}.hook_resid_{state}" for layer in range(2) for state in ("pre", "mid", "post")]
    table = table.loc[[p for p in order if p in table.index], [p for p in order if p in table.columns]]
    np.testing.assert_allclose(cells(shown["similarity"].data[0]), table, atol=1e-4)


def test_head_positions_are_the_tables(made):
    comparison, shown = made
    for trace, (_, table) in zip(
        shown["head_positions_zero"].data, comparison.by_side("head_positions").items(), strict=True
    ):
        expected = table.pivot(index=["layer", "head"], columns="position", values="zero")
        np.testing.assert_allclose(cells(trace), expected, atol=1e-4)


def test_edges_are_the_largest_over_layers(made):
    comparison, shown = made
    for method in ("zero", "mean", "resample"):
        table = comparison.tables["edges_learned"]
        row = table.loc[table[method].idxmax()]
        assert cells(shown[f"edges_{method}"].data[1])[int(row["query"]), int(row["key"])] == pytest.approx(
            row[method], abs=1e-4
        )


def test_heads_are_ablated_in_three_ways(made):
    comparison, shown = made
    assert [bar.name for bar in shown["heads"].data] == ["zero", "mean", "resample"] * 2
    np.testing.assert_allclose(shown["heads"].data[5].y, comparison.tables["heads_learned"]["resample"])


def test_decodability_cells_are_the_score_above_the_best_control(made):
    comparison, shown = made
    table = comparison.tables["decodability"]
    row = table.iloc[-1]
    panel = shown["decodability"].data[-1]
    variables = list(dict.fromkeys(table["variable"]))
    cell = float(panel.z[variables.index(row["variable"])][row["position"]])
    assert cell == pytest.approx(row["score"] - max(row["chance"], row["shuffled"], row["untrained"]), abs=1e-4)


def test_circuits_are_the_learned_models(made):
    comparison, shown = made
    assert len(shown["ov"].data) == 4
    assert len(shown["qk"].data) == 2 * 4
    model = comparison.pairing.learned.model.to_transformer()
    np.testing.assert_allclose(cells(shown["ov"].data[2]), full_ov_circuit(model, 1, 0), atol=1e-4)


def figures_of(comparison, model):
    """The figures, had another model been compared."""
    pairing = comparison.pairing
    return figures(replace(comparison, pairing=replace(pairing, learned=replace(pairing.learned, model=model))))


def test_a_model_known_by_its_hooks_alone_has_no_figures_of_its_weights(made):
    hooked = made[0].pairing.learned.model

    class Bridge:
        """Hooked as the model is, without its weights."""

        cfg, hook_dict, run_with_cache = hooked.cfg, hooked.hook_dict, hooked.run_with_cache

    shown = figures_of(made[0], Bridge())
    assert "heads" in shown
    assert {"ov", "qk"} & set(shown) == set()


@pytest.mark.slow
def test_smeared_keys_have_no_qk_figure(made, task):
    smeared = untrained(Architecture(2, 2, 8, 8, positions="sinusoidal_qk", smeared_keys=True), task, 0)
    shown = figures_of(made[0], HookedModel(smeared))
    assert "qk" not in shown
    assert len(shown["ov"].data) == 4


def test_a_model_with_layer_norm_has_no_figures_of_its_weights(made, task):
    architecture = Architecture(2, 2, 12, 6, normalization="LN", bias=True, d_mlp=8)
    shown = figures_of(made[0], HookedModel(untrained(architecture, task, 0)))
    assert {"ov", "qk"} & set(shown) == set()
    assert {"heads", "decodability"} <= set(shown)
