"""The figure of all claims: its band has a name, and a claim without a trial its status in words."""

from dataclasses import replace

import pytest

from rasplens.compare.claims.answers import AnswersOn
from rasplens.compare.claims.claim import Claim, left_open, untestable
from rasplens.compare.claims.edges.questions import Keys, OtherEdges, Route
from rasplens.compare.claims.effects.given_answers import GivesAnswers
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, IN_PART, OPEN, UNTESTABLE, judged, known_share
from rasplens.compare.report.figures.claims import claims_figure
from rasplens.compare.verdict.verdict import verdict

CLAIMS = [
    Claim(AnswersOn("held out"), HOLDS, 1.0, 0.96, 1.0, 0.1, 60, True, "asked"),
    Claim(Keys(), HOLDS, 0.9, 0.8, 0.95, 0.1, 60, True, "patched"),
    left_open(Keys(), "nothing tells"),
    untestable(OtherEdges(), "left open"),
]
OF_A_PART = [Claim(GivesAnswers(), HOLDS, 0.9, 0.8, 0.95, 0.1, 60, True, "given"), *CLAIMS]


@pytest.mark.parametrize(
    ("claims", "band", "of_routes"), [(CLAIMS, "neither fails nor holds", 0.65), (OF_A_PART, IN_PART, 0.1)]
)
def test_the_grey_bands_are_of_each_claim_and_what_has_no_trial_is_said(floor, claims, band, of_routes):
    found = verdict(claims)
    figure = claims_figure(replace(floor, verdict=found))
    assert [one.text for one in figure.layout.annotations] == [OPEN, UNTESTABLE]
    assert any(trace.name == band for trace in figure.data)
    bands = {(shape.y0 + shape.y1) / 2: (shape.x0, shape.x1) for shape in figure.layout.shapes}
    routes = {i for i, one in enumerate(found.all_claims) if isinstance(one.subject, Route)}
    assert bands == dict.fromkeys(routes, (of_routes, 0.75))
    assert len(routes) < len(found.all_claims)  # answers have none


def test_intervals_on_both_sides_of_a_band_are_judged_as_it_says(floor):
    """Of the largest and the least shares of which the judge says so, the ends of the intervals meet the band."""
    figure = claims_figure(replace(floor, verdict=verdict(CLAIMS)))
    low, high = {(shape.x0, shape.x1) for shape in figure.layout.shapes}.pop()
    shares = [known_share(right / 1000, 1000) for right in range(1001)]
    held = min((one for one in shares if judged([one]) == HOLDS), key=lambda one: one.low)
    failed = max((one for one in shares if judged([one]) == FAILS), key=lambda one: one.high)
    assert held.low == pytest.approx(high, abs=2e-3)
    assert failed.high == pytest.approx(low, abs=2e-3)
