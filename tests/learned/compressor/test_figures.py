import numpy as np
import pandas as pd

from rasplens.learned.compressor.evaluation import baseline
from rasplens.learned.compressor.figures import draw_overlap, draw_sweep


def test_the_overlap_stands_beside_that_of_principal_components(narrow_frac):
    figure = draw_overlap(narrow_frac)
    ours, theirs = figure.data
    np.testing.assert_allclose(ours.z, narrow_frac.overlap, atol=1e-4)
    np.testing.assert_allclose(theirs.z, baseline(narrow_frac).overlap, atol=1e-4)
    assert ours.zmax == theirs.zmax == -ours.zmin
    assert list(figure.layout.xaxis.ticktext) == narrow_frac.labels


def test_names_are_text_and_no_markup(narrow_frac, monkeypatch):
    monkeypatch.setattr(type(narrow_frac), "labels", property(lambda self: ["<b>bold</b>"] * len(self.projection)))
    assert draw_overlap(narrow_frac).layout.xaxis.ticktext[0] == "&lt;b&gt;bold&lt;/b&gt;"


def test_a_sweep_has_a_panel_for_each_program_and_its_knee():
    rows = [
        {
            "program": name,
            "d": d,
            "token": d / 4,
            "cosine": 0.5,
            "pca_token": 0.1,
            "is_knee": knee and d == 4,
            "output_loss": 0.5 / d,
            "loss": 0.5 if d == 1 else 0.0,
        }
        for name, knee in (("one", True), ("two", False))
        for d in (1, 4)
    ]
    figure = draw_sweep(pd.DataFrame(rows))
    assert len(figure.data) == 8
    assert list(figure.data[3].y) == [1, 0.125]  # of answers and layers together
    assert figure.layout[f"yaxis{figure.data[3].yaxis[1:]}"].type == "log"
    assert [annotation.text for annotation in figure.layout.annotations] == ["one", "two"]
    assert list(figure.data[0].y) == [0.25, 1]
    (knee,) = figure.layout.shapes
    assert knee.x0 == 4
    assert knee.line.width > 0  # the template draws shapes without lines
