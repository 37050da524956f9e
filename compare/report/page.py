"""The report of a comparison: one HTML page with figures and tables, which opens offline."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
from markupsafe import Markup, escape

from rasplens import __version__
from rasplens.compare.comparison import Comparison
from rasplens.compare.report.attention_view import AttentionView, attention_view
from rasplens.compare.report.figures.every_figure import DESCRIBED, figures
from rasplens.compare.report.findings import Paragraph, paragraphs
from rasplens.compare.report.glossary import GLOSSARY
from rasplens.compare.report.sections import SECTIONS, SHOWN_IN, WIDE, Section
from rasplens.compare.report.sentences import table
from rasplens.compare.report.where import Located, heads_found, variables_found
from rasplens.compare.report.worked_input import worked_input
from rasplens.compare.verdict.headline import headline
from rasplens.model.storage import write_atomically

MOST_ROWS = 200
"""Most rows of a table that the page shows; CSV files have all rows."""

ASSETS = files("rasplens.compare.report") / "assets"
"""The page, its styles and its script, and a reduced plotly.js (without maps, volumes and 3D)."""


@dataclass(frozen=True, eq=False)
class ShownFigure:
    """A figure, as the page's script draws it.

    Attributes:
        name: Its name.
        label: What it shows, in words.
        height: In pixels.
        drawn: Its data and layout.
        is_wide: Whether it keeps its width on a phone, and scrolls.
    """

    name: str
    label: str
    height: int
    drawn: Mapping[str, Any]
    is_wide: bool


@dataclass(frozen=True)
class ShownTable:
    """A table.

    Attributes:
        name: Its name.
        title: Its name in words.
        size: How many rows it has, in words.
        rows: The first of them, as HTML.
        rest: What to say of the others, if there are any.
        csv: The address of the whole table.
    """

    name: str
    title: str
    size: str
    rows: Markup
    rest: str
    csv: str


@dataclass(frozen=True, eq=False)
class SectionContent:
    """A section with what there is to show in it."""

    section: Section
    findings: tuple[Paragraph, ...]
    figures: tuple[ShownFigure, ...]
    tabs: Mapping[str, tuple[ShownFigure, ...]]
    tables: tuple[ShownTable, ...]
    variables: tuple[Located, ...]
    heads: tuple[Located, ...]
    attention: AttentionView | None

    @property
    def is_only_tables(self) -> bool:
        """Whether there is nothing else to see."""
        return not (self.figures or self.tabs or self.variables or self.heads or self.attention)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to see at all."""
        return self.is_only_tables and not self.tables


def write_report(comparison: Comparison, path: str | Path) -> None:
    """Writes the report of a comparison: one HTML page that opens offline, complete or not at all."""
    write_atomically(Path(path), render(comparison).encode())


def render(comparison: Comparison) -> str:
    """The page, self-contained: styles, scripts and data are inside."""
    parts = _parts(comparison)
    names = {part.section.name for part in parts}
    contents = [("verdict", "Verdict"), *((part.section.name, part.section.title) for part in parts)]
    return _template().render(
        title=f"{comparison.task}: learned model against {comparison.program!r}",
        facts=f"Learned model {comparison.learned_origin} · {comparison.n_inputs:,} held-out inputs · "
        f"seed {comparison.seed} · RASPLens {__version__}",
        assets={name: Markup(_asset(file)) for name, file in ASSET_FILES.items()},
        templates={"light": _colours("plotly_white"), "dark": _colours("plotly_dark")},
        comparison=comparison,
        headline=headline(comparison.program, comparison.verdict),
        evidence_of={level: about for level, some in SHOWN_IN.items() for about in some if about in names},
        worked=worked_input(comparison),
        contents=[*contents, ("glossary", "Glossary")],
        parts=parts,
        glossary=GLOSSARY,
    )


ASSET_FILES = {
    "style": "page.css",
    "transformer": "transformer.js",
    "script": "page.js",
    "plotly": "plotly-cartesian.min.js",
}


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _template() -> jinja2.Template:
    """The page's template; what is put into it is escaped."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= {"prose": _prose, "json": _json}
    return environment.from_string(_asset("page.html"))


def _prose(sentence: str) -> Markup:
    """A sentence; percent signs stay with their numbers."""
    return Markup(str(escape(sentence)).replace(" %", "&nbsp;%"))


def _json(value: Any) -> Markup:
    """JSON that can stand in a script element: no markup in it ends or opens one."""
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def _colours(name: str) -> dict[str, Any]:
    """One of plotly's templates, on the page's own background."""
    template = pio.templates[name].to_plotly_json()
    template["layout"] |= {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
    return dict(template)


def _parts(comparison: Comparison) -> list[SectionContent]:
    """The sections that have something to show, each with its findings; other findings stand with the evidence."""
    made = {name: _figure(name, figure) for name, figure in figures(comparison).items()}
    tables = {name: _table(name, frame) for name, frame in _tables(comparison).items()}
    said = paragraphs(comparison)[1:]  # the first is the verdict
    parts = []
    for section in SECTIONS:
        tabs = {
            title: tuple(made[name] for name in names if name in made) for title, names in section.tabs.items()
        }
        is_where = section.name == "where"
        part = SectionContent(
            section=section,
            findings=(),
            figures=tuple(made[name] for name in section.figures if name in made),
            tabs={title: shown for title, shown in tabs.items() if shown},
            tables=tuple(tables[name] for name in section.tables if name in tables),
            variables=tuple(variables_found(comparison)) if is_where else (),
            heads=tuple(heads_found(comparison)) if is_where else (),
            attention=attention_view(comparison) if section.name == "attention" else None,
        )
        if not part.is_empty:
            parts.append(part)
    names = {part.section.name for part in parts}
    return [
        replace(
            part,
            findings=tuple(
                one for one in said if part.section.name == (one.about if one.about in names else "evidence")
            ),
        )
        for part in parts
    ]


def _tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """The tables with rows, and the claims and the axes as one each."""
    axes = pd.DataFrame([axis.to_dict() for axis in comparison.axes])
    tables = {"claims": comparison.verdict.claims, "axes": axes}
    tables |= {name: table(comparison, name) for name in comparison.tables}
    return {name: frame for name, frame in tables.items() if len(frame)}


def _figure(name: str, figure: go.Figure) -> ShownFigure:
    drawn = json.loads(figure.to_json())
    del drawn["layout"]["template"]  # the page has them, for light and dark
    return ShownFigure(name, DESCRIBED[name], drawn["layout"]["height"], drawn, name in WIDE)


def _table(name: str, frame: pd.DataFrame) -> ShownTable:
    n, title = len(frame), name.replace("_", " ")
    rows = frame.head(MOST_ROWS).to_html(
        index=False, border=0, float_format="{:.3f}".format, escape=True, na_rep="–"
    )
    rest = f"Only the first {MOST_ROWS:,} rows are shown; the CSV file has all." if n > MOST_ROWS else ""
    csv = f"data:text/csv;charset=utf-8,{quote(as_csv(frame))}"
    return ShownTable(name, title, f"{n:,} row{'' if n == 1 else 's'}", Markup(rows), rest, csv)


def as_csv(frame: pd.DataFrame) -> str:
    """A table as CSV. A cell that a spreadsheet would take for a formula is marked as text by an apostrophe."""
    texts = frame.select_dtypes(exclude="number").columns
    safe = {name: frame[name].map(lambda cell: f"'{cell}" if _is_formula(cell) else cell) for name in texts}
    return frame.assign(**safe).to_csv(index=False)


def _is_formula(cell: object) -> bool:
    return isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
