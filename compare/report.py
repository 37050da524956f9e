"""The report of a comparison: one HTML page with figures, which opens offline."""

import html
from importlib.resources import files
from string import Template

import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from rasplens import __version__
from rasplens.compare.comparison import Comparison
from rasplens.compare.figures import figures

SECTIONS = (
    (
        "The program",
        "The expressions of the reference program, each right of what it reads; selectors are diamonds.",
        ("program",),
        None,
    ),
    (
        "Residual subspaces",
        "Where a linear probe reads each variable of the program from the learned residual stream, at the "
        "positions where the compiled model uses it. Colour is the held-out score minus its best control "
        "(commonest value, shuffled labels, an untrained model of the same shape): blue is above the controls, "
        "white is what they explain. Decodable is not the same as used.",
        ("decodability",),
        "decodability_by_point",
    ),
    (
        "Attention",
        "Every compiled head beside the learned head that it is matched with. Scores are 1 minus the "
        "Jensen-Shannon divergence in bits, on rows where the compiled head acts; <i>shuffled</i> compares "
        "with another input's rows, and <i>content</i> is what is left above that.",
        ("attention",),
        "attention",
    ),
    (
        "Ablation: heads",
        "Token accuracy lost when a head's output is set to zero, or to its mean over inputs. A lower bound "
        "where other parts repair the damage.",
        ("heads",),
        None,
    ),
    (
        "Ablation: attention edges, zero",
        "Token accuracy lost when one query may no longer attend to one key (all heads of a layer; the rest "
        "of the row is renormalised). The largest over layers; blank edges get no attention.",
        ("edges_zero",),
        None,
    ),
    (
        "Ablation: attention edges, mean",
        "The same with the edge's attention held at its mean over inputs.",
        ("edges_mean",),
        None,
    ),
    (
        "OV circuits of the learned model",
        "W_E W_V W_O W_U: the logits that attending to a token writes. A blue diagonal copies.",
        ("ov",),
        None,
    ),
    (
        "QK circuits of the learned model",
        "The attention score of layer 0 as a sum of four terms, by what stands on the query's and the key's side.",
        ("qk",),
        None,
    ),
    (
        "Residual stream of the compiled model",
        "What every direction holds at every position of one input, from the embedding on, layer by layer.",
        ("residual_stream",),
        None,
    ),
)
"""Title, explanation, figures, and the table (an attribute of the comparison), of each section."""


def render(comparison: Comparison) -> str:
    """The page, self-contained: styles, scripts and data are inside."""
    made = figures(comparison)
    parts = [_findings(comparison)]
    for title, text, shown, table in SECTIONS:
        if not any(name in made for name in shown):
            continue
        parts.append(f"<section><h2>{title}</h2><p class='note'>{text}</p>")
        parts += [_figure(name, made[name]) for name in shown if name in made]
        if table is not None:
            frame = getattr(comparison, table)
            parts.append(_table(frame() if callable(frame) else frame))
        parts.append("</section>")
    template = Template((files("rasplens.compare") / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=html.escape(f"{comparison.task}: learned model against {comparison.program!r}"),
        facts=html.escape(
            f"Learned model {comparison.learned_origin} · {comparison.n_inputs:,} held-out inputs · "
            f"seed {comparison.seed} · RASPLens {__version__}"
        ),
        plotly=get_plotlyjs(),
        body="\n".join(parts),
    )


def _findings(comparison: Comparison) -> str:
    paragraphs = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in comparison.findings)
    return f"<section class='findings' id='findings'>{paragraphs}</section>"


def _figure(name: str, figure: go.Figure) -> str:
    options = {"displaylogo": False, "responsive": True}
    body = figure.to_html(full_html=False, include_plotlyjs=False, div_id=f"figure-{name}", config=options)
    return f"<div class='scroll'>{body}</div>"


def _table(frame: pd.DataFrame) -> str:
    body = frame.to_html(index=False, border=0, float_format="{:.3f}".format, escape=True)
    return f"<details><summary>Table</summary><div class='scroll'>{body}</div></details>"
