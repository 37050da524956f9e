import json

import pytest

from rasplens import terminal


def test_figures_in_tables():
    assert [terminal.figure(value) for value in (0.12345, 12_345, "x", None)] == ["0.123", "12,345", "x", "None"]


def test_json_is_printed_alone(capsys):
    terminal.as_json({"a": [1, None]})
    assert json.loads(capsys.readouterr().out) == {"a": [1, None]}


CLAIMS = [
    ["routes", "nothing is gathered along other edges", "not testable", 0.12345, "-", 1_234],
    ["variables", "variable has_copies_left", "holds", 1.0, 0.98765, 7],
]


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_tables_lose_no_column_and_break_no_word(width, capsys, monkeypatch):
    monkeypatch.setattr(terminal.out, "width", width)
    headings = ["kind", "claim", "status", "score", "low", "n"]
    terminal.table("Claims", headings, CLAIMS, ["A note that is longer than a narrow terminal is wide."])
    lines = capsys.readouterr().out.splitlines()
    words = [word for line in lines for word in line.split()]
    shown = [terminal.figure(cell) for row in CLAIMS for cell in row]
    expected = [
        "Claims",
        *headings,
        *" ".join(shown).split(),
        *["A", "note", "that", "is", "longer", "than", "a", "narrow"],
    ]
    assert not [word for word in expected if word not in words]
    assert not any("…" in word for word in words)
    assert lines[0] == "Claims"
    if width >= 60:
        assert max(map(len, lines)) <= width
    first, second = (next(line for line in lines if line.startswith(row[0])) for row in CLAIMS)
    assert first.split()[-3:] == ["0.123", "-", "1,234"]
    assert second.split()[-3:] == ["1.000", "0.988", "7"]


def test_paragraphs_break_between_words(capsys, monkeypatch):
    monkeypatch.setattr(terminal.out, "width", 20)
    terminal.say("see /a/path/that/is/longer/than/the/terminal now")
    assert capsys.readouterr().out.split() == ["see", "/a/path/that/is/longer/than/the/terminal", "now"]
