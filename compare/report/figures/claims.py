"""The claims of a program at one look."""

from collections.abc import Sequence
from math import isnan
from textwrap import wrap

import plotly.graph_objects as go

from rasplens.compare.claims.claim import Claim
from rasplens.compare.claims.edges.questions import Route
from rasplens.compare.claims.effects.part import SOME_OF_IT
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, IN_PART, OPEN, UNTESTABLE
from rasplens.compare.comparison import Comparison
from rasplens.compare.report.figures.panels import GREY, LAYOUT, LEGEND, escape
from rasplens.compare.verdict.headline import in_words

COLOURS = {HOLDS: "#1a7f5a", IN_PART: "#6b8f1a", OPEN: "#b7791f", FAILS: "#b3261e", UNTESTABLE: GREY}
"""Colour by status, dark enough to be read; symbols distinguish the statuses without colour."""

SYMBOLS = {HOLDS: "circle", IN_PART: "square", OPEN: "diamond", FAILS: "x"}

LINE, LINES = 26, 2
"""Most letters per line, and lines, of a claim in the figure; hovering shows all of it."""

HOVERED = 60
"""Letters per line of what hovering shows."""


def claims_figure(comparison: Comparison) -> go.Figure | None:
    """Every claim with its 95 % interval and its control.

    An interval above a claim's grey band makes it hold. One below makes it fail, if such claims can fail. Of a
    part of a model, one within the band makes it hold in part. Claims on answers have no band: see
    `claims.answers`.
    """
    claims, is_of_part = comparison.verdict.all_claims, comparison.verdict.is_of_part
    if not claims:
        return None
    figure = go.Figure()
    for status, symbol in SYMBOLS.items():
        found = [(i, claim) for i, claim in enumerate(claims) if claim.status == status and claim.is_measured]
        if found:
            figure.add_trace(_points(status, symbol, found, is_of_part))
    figure.add_trace(_controls(claims))
    for i, claim in enumerate(claims):
        if not claim.is_measured:
            figure.add_annotation(x=0.5, y=i, text=claim.status, showarrow=False, font={"color": GREY})
    _add_bands(figure, claims, is_of_part)
    figure.update_yaxes(
        tickvals=list(range(len(claims))),
        ticktext=[_label(claim) for claim in claims],
        range=[len(claims) - 0.5, -0.5],
        zeroline=False,
        automargin=True,
    )
    figure.update_xaxes(range=[-0.03, 1.03], zeroline=False, title_text="share as claimed")
    layout = {**LAYOUT, "margin": {"l": 10, "r": 20, "t": 40, "b": 50}}
    return figure.update_layout(**layout, height=130 + 36 * len(claims), legend=LEGEND)


def _controls(claims: Sequence[Claim]) -> go.Scatter:
    controls = [(i, claim) for i, claim in enumerate(claims) if claim.control == claim.control]
    return go.Scatter(
        x=[claim.control for _, claim in controls],
        y=[i for i, _ in controls],
        name="control",
        mode="markers",
        marker={"symbol": "line-ns-open", "size": 12, "color": GREY, "line": {"width": 2}},
        hovertemplate="control: %{x:.2f}<extra></extra>",
    )


def _add_bands(figure: go.Figure, claims: Sequence[Claim], is_of_part: bool) -> None:
    """Shade for each claim the shares of which an interval alone tells neither that it holds nor that it fails."""
    for i, claim in enumerate(claims):
        is_effect = is_of_part and isinstance(claim.subject, Route)
        low, high = SOME_OF_IT if is_effect else claim.subject.at_most, claim.subject.at_least
        if not isnan(low + high):
            figure.add_shape(
                type="rect", x0=low, x1=high, y0=i - 0.5, y1=i + 0.5, fillcolor=GREY, opacity=0.15, line_width=0
            )
    figure.add_trace(
        go.Scatter(
            x=[None],
            y=[None],
            name=IN_PART if is_of_part else "neither fails nor holds",
            mode="markers",
            marker={"symbol": "square", "size": 14, "color": GREY, "opacity": 0.3},
        )
    )


def _points(status: str, symbol: str, found: list[tuple[int, Claim]], is_of_part: bool) -> go.Scatter:
    claims = [claim for _, claim in found]
    return go.Scatter(
        x=[claim.score for claim in claims],
        y=[i for i, _ in found],
        error_x={
            "array": [claim.high - claim.score for claim in claims],
            "arrayminus": [claim.score - claim.low for claim in claims],
            "symmetric": False,
            "thickness": 2,
        },
        name=status,
        text=[
            "<br>".join(map(escape, wrap(in_words(claim, is_of_part), HOVERED)))
            + f"<br>{claim.proof or f'{claim.n:,} trials'}"
            for claim in claims
        ],
        hovertemplate="%{text}<extra></extra>",
        mode="markers",
        marker={"symbol": symbol, "size": 10, "color": COLOURS[status]},
    )


def _label(claim: Claim) -> str:
    """A claim in lines short enough for a phone."""
    lines = wrap(claim.words, LINE, max_lines=LINES, placeholder=" …")
    return "<br>".join(map(escape, lines))
