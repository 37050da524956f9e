"""Tables on pages, and tables in files."""

import pandas as pd
import pytest

from lab.page import RESULTS, as_csv, drawn_by, inline, show, table, write_csv
from rasplens import __version__


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.csv")), ids=lambda path: path.stem)
def test_every_result_says_what_drew_it_and_is_a_table(path):
    assert path.read_text().startswith("# ")
    found = pd.read_csv(path, comment="#")
    assert len(found)
    assert not any(name.startswith("Unnamed") for name in found)


def test_a_table_in_a_file_comes_back(tmp_path):
    rows = [["a|b", "1, 2"], ["c", 'said "d"']]
    keep = as_csv("some-pairs", tmp_path)
    for name, file in (("wrong", "some-pairs-wrong.csv"), ("", "some-pairs.csv")):
        assert file in keep(name, ["one", "two"], rows)
        assert pd.read_csv(tmp_path / file, comment="#").to_numpy().tolist() == rows
        assert (tmp_path / file).read_text().startswith(f"# {drawn_by()}\n")
    assert __version__ in drawn_by()


def test_a_bar_in_a_cell_divides_no_cells():
    assert inline("", ["one"], [["a|b"]]) == table(["one"], [["a|b"]]) == "| one |\n| --- |\n| a\\|b |"


def test_a_folder_is_made(tmp_path):
    write_csv(tmp_path / "new" / "some.csv", ["one"], [[1]])
    assert (tmp_path / "new" / "some.csv").is_file()


def test_what_is_shown_is_put_between_the_markers(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- it: begin -->\nold\n<!-- it: end -->\nAfter.\n")
    show("new", page, "it")
    assert page.read_text() == "Before.\n<!-- it: begin -->\nnew\n<!-- it: end -->\nAfter.\n"
    assert capsys.readouterr().out == "new\n"
    with pytest.raises(SystemExit, match=r"no markers .*other: begin"):
        show("new", page, "other")
