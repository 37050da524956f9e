"""The report of a comparison: one HTML page with figures and tables, which opens offline."""

import html
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from urllib.parse import quote

import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from rasplens import __version__
from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.ablation.measurement import METHODS
from rasplens.compare.report.figures.every_figure import figures
from rasplens.compare.report.findings import Paragraph, paragraphs
from rasplens.compare.report.glossary import GLOSSARY
from rasplens.compare.report.headline import headline
from rasplens.compare.report.sentences import table
from rasplens.model.storage import write_atomically

MOST_ROWS = 200
"""Longer tables are shown up to here; their CSV files are whole."""

NARROW = ("claims", "evidence", "interchange")
"""Figures that can be read at the width of a phone; others keep their width and scroll."""


BUTTONS = [["toImage", "zoom2d", "pan2d", "resetScale2d"]]
"""Of a figure: nothing that would send its data anywhere."""


@dataclass(frozen=True)
class Section:
    """A part of the page; it is left out where there is nothing to show in it.

    Attributes:
        name: Its anchor; findings refer to it.
        title: Its heading.
        text: An explanation, as HTML.
        figures: The figures in it, by their names.
        tables: The tables, by their names.
        tabs: By the title of a tab, the figures in it.
    """

    name: str
    title: str
    text: str
    figures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    tabs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


SECTIONS = (
    Section(
        "claims",
        "The claims of the program",
        "What the program claims of the model, each with its status and its 95 % interval. The verdict is their "
        "conjunction: no claim pays for another. It holds if its interval lies right of the grey band, and fails "
        "if it lies left of it. Answers have to agree more closely.",
        ("claims",),
        ("claims",),
    ),
    Section(
        "routes",
        "Routes",
        "Parts of attention edges (values, keys, queries, or the attention itself) are patched from another input "
        "in all layers and heads at once. The compiled model, patched alike, says which answers must change and "
        "which must stay; the shares that do are shown beside their controls.",
        (),
        ("routes",),
    ),
    Section(
        "evidence",
        "The evidence",
        "Five axes describe the models on one scale: 0 is what the controls reach, 1 a perfect score. Bars are "
        "95 % intervals over inputs; models and sites stay.",
        ("evidence",),
        ("axes",),
    ),
    Section(
        "behaviour",
        "Behaviour",
        "How often the learned model answers as the program does. Inputs are held-out ones, those that "
        "distinguish alternative programs, and out-of-distribution ones (independent tokens).",
        (),
        ("behaviour",),
    ),
    Section(
        "program",
        "The program",
        "The expressions of the reference program, each right of what it reads; selectors are diamonds.",
        ("program",),
    ),
    Section(
        "interchange",
        "Interchange interventions",
        "A variable's subspace of the learned residual stream is patched from another input. <i>IIA</i> is the "
        "share of the answers that must change and are then the program's. <i>Specificity</i> is the share of the "
        "other answers that stay right. The score is the smaller of the two. The controls are full-stream "
        "patching, random subspaces of the same rank, and an untrained model. The <i>active part</i> is what the "
        "model reads and the variable itself moves: where its score is lower, the interchange may be an illusion.",
        ("interchange",),
        ("interchange",),
    ),
    Section(
        "attention",
        "Attention",
        "Every compiled head beside the learned head that it is matched with. Scores are 1 minus the "
        "Jensen-Shannon divergence in bits, on the compiled head's active query rows; <i>shuffled</i> compares "
        "with another input's rows, and <i>input dependence</i> is what is left above that. "
        "<i>Concordance</i> (Lin 1989) says how closely attention changes over inputs with the compiled "
        "head's, also on its inactive query rows. "
        "The axis is the smaller of similarity (above uniform attention) and concordance, of the worst head.",
        ("attention",),
        ("attention", "shared_heads"),
    ),
    Section(
        "ablation",
        "Ablation",
        "An ablation effect is the drop in token accuracy. <i>Zero</i> ablation sets a head's output to zero, "
        "<i>mean</i> ablation to its mean over inputs, <i>resample</i> ablation to that of another input. An edge "
        "is the attention of all heads of a layer from one query to one key. Its row keeps its proportions "
        "otherwise. The maps show the largest effect over layers; blank edges get no attention. An effect is a "
        "lower bound where other parts repair the damage.",
        ("heads",),
        (
            *(f"{name}_{side}" for name in ("heads", "head_positions", "joint", "edges")
              for side in ("compiled", "learned")),
            "neurons_learned",
            "matched_profiles",
        ),
        {method: (f"edges_{method}", f"head_positions_{method}") for method in METHODS},
    ),
    Section(
        "subspaces",
        "Residual subspaces",
        "Where a linear probe reads each variable of the program from the learned residual stream, at the "
        "positions where it is causally relevant in the compiled model. Colour is the held-out score minus its "
        "best control (commonest value, shuffled labels, an untrained model of its shape): blue is above the "
        "controls, white is what they explain. Decodable is not the same as used.",
        ("decodability",),
        ("decodability", "representations"),
    ),
    Section(
        "overlaps",
        "Shared subspaces",
        "How much of the smaller of two variables' subspaces lies in the other, at the last hook point of the "
        "learned model where both have one, averaged over positions.",
        ("overlaps",),
        ("overlaps",),
    ),
    Section(
        "similarity",
        "Similarity of residual streams",
        "Debiased linear CKA of every hook point of the compiled model with every one of the learned model. It "
        "describes, and is no evidence of its own: it can move without any change of function.",
        ("similarity",),
        ("similarity",),
    ),
    Section(
        "ov",
        "OV circuits of the learned model",
        "W_E W_V W_O W_U: the logits that attending to a token writes. A blue diagonal copies.",
        ("ov",),
    ),
    Section(
        "qk",
        "QK circuits of the learned model",
        "The attention score of layer 0 as a sum of four terms, by what stands on the query's and the key's side.",
        ("qk",),
    ),
    Section(
        "residual_stream",
        "Residual stream of the compiled model",
        "What every direction holds at every position of one input, from the embedding on, layer by layer.",
        ("residual_stream",),
    ),
)  # fmt: skip


def write_report(comparison: Comparison, path: str | Path) -> None:
    """Writes the report of a comparison: one HTML page that opens offline, complete or not at all."""
    write_atomically(Path(path), render(comparison).encode())


def render(comparison: Comparison) -> str:
    """The page, self-contained: styles, scripts and data are inside."""
    made, tables = figures(comparison), _tables(comparison)
    shown = [
        section
        for section in SECTIONS
        if any(name in made for name in section.figures) or any(name in tables for name in section.tables)
    ]
    names = [section.name for section in shown]
    said: dict[str, list[Paragraph]] = {}
    for paragraph in paragraphs(comparison)[1:]:  # the first is the verdict
        said.setdefault(paragraph.about if paragraph.about in names else "evidence", []).append(paragraph)
    contents = "".join(f'<a href="#{section.name}">{section.title}</a> ' for section in shown)
    template = Template((files("rasplens.compare.report") / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=html.escape(f"{comparison.task}: learned model against {comparison.program!r}"),
        facts=html.escape(
            f"Learned model {comparison.learned_origin} · {comparison.n_inputs:,} held-out inputs · "
            f"seed {comparison.seed} · RASPLens {__version__}"
        ),
        plotly=get_plotlyjs(),
        verdict=_verdict(comparison, names),
        contents=contents,
        body="\n".join(_section(section, made, tables, said.get(section.name, [])) for section in shown),
        glossary=_glossary(),
    )


def _tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """The tables with rows, and the claims and the axes as one each."""
    axes = pd.DataFrame([axis.to_dict() for axis in comparison.axes])
    tables = {
        "claims": comparison.verdict.claims,
        "axes": axes,
        **{name: table(comparison, name) for name in comparison.tables},
    }
    return {name: frame for name, frame in tables.items() if len(frame)}


SHOWN_IN = {"answers": "behaviour", "variables": "interchange", "routes": "routes"}
"""The section that has the evidence of each level of a verdict."""


def _verdict(comparison: Comparison, shown: Collection[str]) -> str:
    """The verdict, its levels, each with a link to its evidence, and why."""
    found = headline(comparison.program, comparison.verdict)
    levels = []
    for line in found.levels:
        level, answer = html.escape(line.level), html.escape(line.answer)
        about = SHOWN_IN[line.level]
        name = f'<a href="#{about}">{level}</a>' if about in shown else level
        levels.append(
            f'<tr><th scope="row">The same {name}</th><td><span class="answer {answer.replace(" ", "-")}">{answer}'
            f"</span></td><td>{html.escape(line.counts)}</td></tr>"
        )
    reasons = "".join(f"<li>{_prose(reason)}</li>" for reason in found.reasons)
    return f"<p>{_prose(found.sentence)}</p><table>{''.join(levels)}</table><ul>{reasons}</ul>"


def _finding(paragraph: Paragraph) -> str:
    """What a section comes to, in a sentence; the others are folded away."""
    first, *others = (_prose(sentence) for sentence in paragraph.sentences)
    more = "".join(f"<li>{sentence}</li>" for sentence in others)
    return f"<p><b>{first}</b></p>" + (
        f"<details><summary>In words</summary><ul>{more}</ul></details>" if more else ""
    )


def _glossary() -> str:
    """What the terms mean, folded away at the end of the page."""
    rows = [
        f"<dt>{html.escape(term.name)}</dt><dd>{html.escape(term.meaning)} "
        f"{' '.join(f'<code>{html.escape(column)}</code>' for column in term.columns)}</dd>"
        for term in GLOSSARY
    ]
    return f"<details><summary>What the terms mean</summary><dl>{''.join(rows)}</dl></details>"


def _prose(sentence: str) -> str:
    """A sentence as HTML; percent signs stay with their numbers."""
    return html.escape(sentence).replace(" %", "&nbsp;%")


def _section(
    section: Section,
    made: Mapping[str, go.Figure],
    tables: Mapping[str, pd.DataFrame],
    findings: Sequence[Paragraph],
) -> str:
    parts = [f'<section id="{section.name}"><h2>{section.title}</h2><p class="note">{section.text}</p>']
    parts += map(_finding, findings)
    parts += [_figure(name, made[name]) for name in section.figures if name in made]
    parts.append(_tabs(section, made))
    is_open = not section.figures  # there is nothing else to see
    parts += [_table(name, tables[name], is_open) for name in section.tables if name in tables]
    return "\n".join([*parts, "</section>"])


def _figure(name: str, figure: go.Figure) -> str:
    options = {"displaylogo": False, "responsive": True, "modeBarButtons": BUTTONS}
    body = figure.to_html(full_html=False, include_plotlyjs=False, div_id=f"figure-{name}", config=options)
    return f'<div class="scroll{" narrow" if name in NARROW else ""}">{body}</div>'


def _tabs(section: Section, made: Mapping[str, go.Figure]) -> str:
    """Figures of which one group is seen at a time; the page's script makes the buttons work."""
    groups = {title: [name for name in names if name in made] for title, names in section.tabs.items()}
    groups = {title: names for title, names in groups.items() if names}
    if not groups:
        return ""
    buttons, panels = [], []
    for i, (title, names) in enumerate(groups.items()):
        tab, panel = f"tab-{section.name}-{title}", f"panel-{section.name}-{title}"
        is_first = str(i == 0).lower()
        buttons.append(
            f'<button role="tab" id="{tab}" aria-controls="{panel}" aria-selected="{is_first}">{title}</button>'
        )
        drawn = "\n".join(_figure(name, made[name]) for name in names)
        panels.append(f'<div role="tabpanel" id="{panel}" aria-labelledby="{tab}">{drawn}</div>')
    bar = f'<div role="tablist" aria-label="{section.title}">{"".join(buttons)}</div>'
    return "\n".join([f'<div class="tabs">{bar}', *panels, "</div>"])


def as_csv(frame: pd.DataFrame) -> str:
    """A table as CSV. A cell that a spreadsheet would take for a formula is marked as text by an apostrophe."""
    texts = frame.select_dtypes(exclude="number").columns
    safe = {name: frame[name].map(lambda cell: f"'{cell}" if _is_formula(cell) else cell) for name in texts}
    return frame.assign(**safe).to_csv(index=False)


def _is_formula(cell: object) -> bool:
    return isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def _table(name: str, frame: pd.DataFrame, is_open: bool) -> str:
    title, n = name.replace("_", " "), len(frame)
    body = frame.head(MOST_ROWS).to_html(
        index=False, border=0, float_format="{:.3f}".format, escape=True, na_rep="–"
    )
    rest = f"<p class='note'>The first {MOST_ROWS:,} rows; the CSV file has all.</p>" if n > MOST_ROWS else ""
    rows = f"{n:,} row{'' if n == 1 else 's'}"
    data = f"data:text/csv;charset=utf-8,{quote(as_csv(frame))}"
    return (
        f'<div class="table"><a class="csv" download="{name}.csv" href="{data}">CSV</a>'
        f"<details{' open' if is_open else ''}><summary>Table: {title} ({rows})</summary>"
        f"<div class='scroll rows'>{body}</div>{rest}</details></div>"
    )
