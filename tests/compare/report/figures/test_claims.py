"""The figure of all claims: its band has a name, and a claim without a trial its status in words."""

from dataclasses import replace

import pytest

from rasplens.compare.claims.claim import Claim, left_open, untestable
from rasplens.compare.claims.edges.questions import Keys, OtherEdges
from rasplens.compare.claims.effects.given_answers import GivesAnswers
from rasplens.compare.claims.trials.judging import HOLDS, IN_PART, OPEN, UNTESTABLE
from rasplens.compare.report.figures.claims import claims_figure
from rasplens.compare.verdict.verdict import verdict

CLAIMS = [
    Claim(Keys(), HOLDS, 0.9, 0.8, 0.95, 0.1, 60, True, "patched"),
    left_open(Keys(), "nothing tells"),
    untestable(OtherEdges(), "left open"),
]
OF_A_PART = [Claim(GivesAnswers(), HOLDS, 0.9, 0.8, 0.95, 0.1, 60, True, "given"), *CLAIMS]


@pytest.mark.parametrize(
    ("claims", "band"), [(CLAIMS, "0.65 to 0.75: neither"), (OF_A_PART, f"0.1 to 0.75: {IN_PART}")]
)
def test_the_grey_band_is_named_and_what_has_no_trial_is_said(floor, claims, band):
    figure = claims_figure(replace(floor, verdict=verdict(claims)))
    assert [one.text for one in figure.layout.annotations] == [OPEN, UNTESTABLE]
    assert any(trace.name.startswith(band) for trace in figure.data)
    (shape,) = figure.layout.shapes
    assert (shape.x0, shape.x1) == (float(band.split()[0]), 0.75)
