"""The page: complete, self-contained, and safe with any token."""

import html
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

import pandas as pd
import pytest
from markupsafe import escape

from rasplens.compare.comparison import Comparison
from rasplens.compare.report.figures.every_figure import DESCRIBED
from rasplens.compare.report.findings import paragraphs
from rasplens.compare.report.page import MOST_ROWS, as_csv, render
from rasplens.compare.report.sections import SECTIONS
from rasplens.compare.report.worked_input import worked_input
from rasplens.compare.verdict.headline import headline

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def comparison(markup):
    return markup


@pytest.fixture(scope="module")
def page(comparison) -> str:
    return render(comparison)


def without_plotly(page: str) -> str:
    """What RASPLens wrote: the page without plotly's own library, its first script."""
    return re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.S)


class Elements(HTMLParser):
    """The elements of a page, as (name, attributes)."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def elements(page):
    return Elements(without_plotly(page)).found


def csv_files(elements):
    return {at["download"]: at["href"] for tag, at in elements if tag == "a" and "download" in at}


def test_every_section_has_its_figures(page, elements):
    anchors = [at["id"] for tag, at in elements if tag == "section"]
    # The program has nothing between input and output; and a model that learned nothing may share no subspace.
    optional = {"where", "interchange", "routes", "overlaps", "effects"}
    expected = [section.name for section in SECTIONS if section.name not in optional]
    assert [name for name in anchors if name not in optional] == ["verdict", "source", *expected, "glossary"]
    figures = ["claims", "evidence", "program", "heads", "decodability", "similarity", "ov", "qk"]
    figures += [
        f"{name}_{method}" for name in ("edges", "head_positions") for method in ("zero", "mean", "resample")
    ]
    for name in [*figures, "residual_stream"]:
        assert f'id="figure-{name}"' in page
        assert f'id="data-figure-{name}"' in page


def test_figures_say_what_they_show(elements):
    figures = [at for _, at in elements if at.get("class") == "figure"]
    assert len(figures) >= 15
    for at in figures:
        assert at["role"] == "img"
        assert at["aria-label"] == DESCRIBED[at["id"].removeprefix("figure-")]


def test_the_page_is_small_enough_to_send(page):
    assert len(page.encode()) < 2_500_000


def test_the_program_and_a_worked_input_stand_in_the_head(comparison, page):
    head = html.unescape(page[page.index('id="source"') : page.index('<section id="claims"')])
    assert comparison.about.replace("`", "") in head
    for line in comparison.program_text.splitlines():
        assert f"<span>{line}</span>" in head
    shown = worked_input(comparison)
    assert shown.layout in head
    assert all(f'<th scope="col">{name}</th>' in head for name in shown.positions)


def test_the_verdict_and_the_contents_lead_to_what_is_on_the_page(comparison, page, elements):
    anchors = {at["id"] for _, at in elements if "id" in at}
    links = [at["href"][1:] for tag, at in elements if tag == "a" and at["href"].startswith("#")]
    assert set(links) <= anchors
    assert links.count("behaviour") == 2  # from the verdict and from the contents
    for axis in ("verdict", "evidence", "attention", "ablation", "subspaces"):
        assert links.count(axis) == 1
    head = page[page.index('id="verdict"') : page.index('id="source"')]
    found = headline(comparison.program, comparison.verdict)
    for said in (found.sentence, *found.reasons):
        assert str(escape(said)).replace(" %", r"&nbsp;%") in head


def test_every_claim_is_on_the_page(comparison, page):
    for claim in comparison.verdict.all_claims:
        assert str(escape(claim.words)) in page


def test_every_finding_is_in_the_section_that_shows_it(comparison, page):
    for paragraph in paragraphs(comparison)[1:]:
        shown = f'<section id="{paragraph.about}">'
        section = page[page.index(shown if shown in page else '<section id="evidence">') :]
        section = section[: section.index("</section>")]
        for sentence in paragraph.sentences:
            assert str(escape(sentence)).replace(" %", r"&nbsp;%") in section


def test_every_table_is_there_to_download_as_it_is(comparison, elements):
    found = csv_files(elements)
    assert set(found) == {
        "claims.csv",
        "axes.csv",
        *(f"{name}.csv" for name, table in comparison.tables.items() if len(table)),
    }
    for name, table in comparison.tables.items():
        if len(table):
            kind, data = found[f"{name}.csv"].split(",", 1)
            assert kind == "data:text/csv;charset=utf-8"
            texts = dict.fromkeys(table.select_dtypes(exclude=["number", "bool"]).columns, str)
            read = pd.read_csv(io.StringIO(unquote(data)), dtype=texts)
            pd.testing.assert_frame_equal(read, table, check_dtype=False)


def test_long_tables_are_cut_on_the_page_and_whole_in_their_file(comparison):
    long = pd.DataFrame({"inputs": [f"row {i}" for i in range(MOST_ROWS + 1)], "n": 0})
    page = render(replace(comparison, tables={"behaviour": long}))
    assert f"<td>row {MOST_ROWS - 1}</td>" in page
    assert f"<td>row {MOST_ROWS}</td>" not in page
    assert f"row%20{MOST_ROWS}" in page
    assert f"first {MOST_ROWS} rows" in page


@pytest.mark.slow
def test_a_comparison_without_its_models_has_a_report(comparison, tmp_path):
    comparison.save(tmp_path / "c.json")
    page = render(Comparison.load(tmp_path / "c.json"))
    assert 'id="figure-evidence"' in page
    assert 'class="attention-view"' not in page
    assert '<section id="program">' not in page
    assert '<a href="#program">' not in page


def test_nothing_is_fetched_from_anywhere(page):
    assert not re.search(r"""(src|href)=["'](https?:)?//""", without_plotly(page))
    assert "cdn.plot.ly" not in without_plotly(page)


def test_tokens_are_text_whatever_they_contain(page):
    assert EVIL not in without_plotly(page)
    assert "<b>bold</b>" not in without_plotly(page)
    # In a figure, plotly would read them as markup itself; the page's own script sets them as text.
    data = dict(re.findall(r'<script type="application/json" id="data-([^"]+)">(.*?)</script>', page, flags=re.S))
    assert "\\u003cb>bold" in data["attention"]
    for name, drawn in data.items():
        if name != "attention":
            assert "\\u003cb>bold" not in drawn
    assert "&lt;b&gt;bold&lt;/b&gt;" in data["figure-ov"]


def test_cells_of_csv_are_no_formulas():
    frame = pd.DataFrame({"token": ["=1+1", "@x", "-1", "a"], "score": [-0.5, 1.0, 2.0, -3.0]})
    assert as_csv(frame).splitlines() == ["token,score", "'=1+1,-0.5", "'@x,1.0", "'-1,2.0", "a,-3.0"]
