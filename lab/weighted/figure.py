"""What the weighted programs of the shipped models say, in one figure: the vote, the tent and the sizes.

python -m lab.weighted.figure docs/images/weighted.png        of the numbers that `readings.py` keeps
"""

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from lab.weighted.compressing import DIGITS
from lab.weighted.copying import PLACES
from lab.weighted.numbers import kept
from lab.weighted.sorting import KNOTS

SIZE = 1100, 400
"""Of the picture, in pixels."""

TASKS = "copy", "sort", "compression"

Numbers = Mapping[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path, help="the PNG to write")
    draw({name: kept(f"weighted-{name}-trained-here") for name in TASKS}, parser.parse_args().picture)


def draw(numbers: Mapping[str, Numbers], picture: Path) -> None:
    """Draws what the programs of the three tasks say, as PNG."""
    from lab.pictures import browser_page, photograph  # needs a browser

    with tempfile.TemporaryDirectory() as folder, browser_page(*SIZE) as view:
        html = Path(folder) / "weighted.html"
        figure(numbers).write_html(html, include_plotlyjs=True, config={"displayModeBar": False})
        photograph(view, html, picture)


def figure(numbers: Mapping[str, Numbers]) -> go.Figure:
    """One panel a task: the letter before in a key, votes by distance, and weights by size."""
    titles = (
        "copy: weight of the letter before in a key",
        "sort: votes of a number",
        "compression: scores of digits, by size",
    )
    found = make_subplots(cols=3, subplot_titles=titles, horizontal_spacing=0.08)
    for pair, heads in enumerate(("L0H0, L0H1", "L0H2, L0H3")):
        share = numbers["copy"][f"smear {pair}"]
        found.add_scatter(x=PLACES, y=share, line_shape="hv", name=heads, row=1, col=1)
    found.add_scatter(x=KNOTS, y=numbers["sort"]["votes"], name="votes", row=1, col=2, showlegend=False)
    size = numbers["compression"]["size"]
    weight = np.polynomial.polynomial.polyval(size, numbers["compression"]["weight"])
    found.add_scatter(
        x=size, y=weight, mode="markers", text=[str(one) for one in DIGITS], row=1, col=3, showlegend=False
    )
    axes = ("key's position", "weight"), ("candidate behind voter", "votes"), ("size", "score at SEP")
    for col, (x, y) in enumerate(axes):
        found.update_xaxes(title=x, row=1, col=col + 1)
        found.update_yaxes(title=y, row=1, col=col + 1)
    return found.update_layout(
        template="simple_white", height=SIZE[1] - 20, legend={"x": 0.16, "y": 0.95}, margin={"t": 40, "r": 20}
    )


if __name__ == "__main__":
    main()
