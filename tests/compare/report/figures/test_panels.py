import numpy as np
import pytest

from rasplens.compare.report.figures.panels import (
    DIVERGING,
    MOST_TICKS,
    Panel,
    escape,
    grid,
    heatmap,
    signed_limits,
    ticks,
)

CELLS = np.array([[0.0, 0.5], [np.nan, 1.0]])


def test_cells_keep_their_places_and_their_names():
    trace = heatmap(Panel("t", CELLS, ["r0", "r1"], ["c0", "c1"]))
    np.testing.assert_array_equal(np.array(trace.z, dtype=float), CELLS)
    assert trace.text[0][1] == "r0, c1: 0.5"
    assert (trace.zmin, trace.zmax) == (0, 1)


def test_signed_cells_are_white_at_zero():
    assert signed_limits(np.array([-3.0, 1.0])) == (-3, 3)
    assert signed_limits(np.zeros(3)) == (-1, 1)
    signed = heatmap(Panel("t", CELLS, ["a", "b"], ["a", "b"], limits=(-1.0, 1.0)))
    assert signed.colorscale == heatmap(Panel("t", CELLS, ["a", "b"], ["a", "b"], limits=(-2.0, 2.0))).colorscale
    assert DIVERGING == "RdBu"
    assert signed.colorscale != heatmap(Panel("t", CELLS, ["a", "b"], ["a", "b"])).colorscale


def test_a_grid_has_one_place_per_panel():
    figure = grid([Panel(str(i), CELLS, ["a", "b"], ["x", "y"]) for i in range(3)], columns=2, panel_height=100)
    assert len(figure.data) == 3
    assert figure.layout.height == 80 + 200
    assert figure.data[2].xaxis == "x3"
    assert figure.layout.xaxis3.ticktext == ("x", "y")


def test_long_axes_label_every_few():
    many = [str(i) for i in range(2 * MOST_TICKS)]
    assert ticks(many)["tickvals"] == list(range(0, 2 * MOST_TICKS, 2))
    assert ticks(["a"])["ticktext"] == ["a"]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "<b>x</b>", "a & b"])
def test_names_are_shown_literally(name):
    assert "<" not in escape(name)
    figure = grid([Panel(name, CELLS, [name, "r"], [name, "c"])], columns=1, panel_height=100)
    page = figure.to_html(include_plotlyjs=False)
    assert name not in page
