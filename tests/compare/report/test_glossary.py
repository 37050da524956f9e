"""The glossary explains every column, axis and answer, and the page in docs says the same."""

from importlib import import_module
from pathlib import Path

import pytest

from rasplens.compare import comparison_table
from rasplens.compare.axes import AXES
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN, UNTESTABLE
from rasplens.compare.report.glossary import GLOSSARY, as_markdown
from rasplens.compare.verdict.verdict import IMPLEMENTS, LEVELS, NOT, PARTLY, UNKNOWN

PAGE = Path(__file__).parents[3] / "docs" / "glossary.md"

EXPLAINED = {column for term in GLOSSARY for column in term.columns}


@pytest.mark.parametrize("which", ["ceiling", "floor", "one_head"])
def test_every_column_of_every_table_is_explained(which, request):
    comparison = request.getfixturevalue(which)
    tables = {
        **comparison.tables,
        "claims": comparison.verdict.claims,
        "comparisons": comparison_table([comparison]),
    }
    columns = {column for table in tables.values() for column in table}
    assert not columns - EXPLAINED
    assert set(comparison.axes[0].to_dict()) <= EXPLAINED
    assert {"concordance", "iia"} <= columns  # the negative control: there is something to explain


@pytest.mark.parametrize(
    "names",
    [
        AXES,
        LEVELS,
        (IMPLEMENTS, PARTLY, NOT, UNKNOWN),
        (HOLDS, FAILS, OPEN, UNTESTABLE),
        ("component", "linear map", "DAS", "split", "merged"),
    ],
)
def test_every_axis_answer_and_kind_is_explained(names):
    assert set(names) <= EXPLAINED


def test_every_term_is_made_where_it_says():
    for term in GLOSSARY:
        is_whole = term.module.startswith(("lab.", "rasplens."))
        import_module(term.module if is_whole else f"rasplens.compare.{term.module}")


def test_a_term_is_one_sentence_and_has_one_entry():
    names = [term.name for term in GLOSSARY]
    assert len(names) == len(set(names))
    for term in GLOSSARY:
        assert term.meaning.endswith(".")
        assert ". " not in term.meaning


def test_the_page_says_the_same():
    assert as_markdown() in PAGE.read_text()


def test_what_is_causally_relevant_is_exchanged_and_not_zeroed():
    """The zero of a head may be just what it writes."""
    meaning = next(term.meaning for term in GLOSSARY if term.name == "causally relevant")
    assert "exchanged" in meaning
    assert "zero" not in meaning.lower()
