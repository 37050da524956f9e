"""Attention on an input of the reader's own: each compiled head beside the learned one it is matched with."""

from collections.abc import Sequence

import plotly.graph_objects as go

from rasplens.compare.comparison import Comparison
from rasplens.compare.report.attention_view import attention_on, head_name
from rasplens.compare.report.figures.panels import Panel, grid
from rasplens.compile.rasp import Value

HEIGHT = 330
"""Of a panel, in pixels."""


def attention_figure(comparison: Comparison, tokens: str | Sequence[Value]) -> go.Figure:
    """Each compiled head and the learned head matched with it, on one input: what each query attends to.

    Of compiled heads, what a BOS gets is left out, and the rest adds up to 1.

    Args:
        comparison: One made in this session; or a loaded one, if its models were small enough to be stored.
        tokens: An input of the task, at all of its positions; as text, with spaces or commas between tokens.

    Raises:
        RaspLensError: If there are no models, or no heads to show; or the input has other tokens or another size.
    """
    view = attention_on(comparison, tokens)
    labels = view.labels(0)
    panels = []
    for pair in view.pairs:
        for side, head in pair.heads.items():
            title = f"{side} {head_name(head)}{f', {pair.variable}' if side == 'compiled' else ''}"
            panels.append(Panel(title, pair.patterns[side][0], labels, labels))
    return grid(panels, 2, HEIGHT)
