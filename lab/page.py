"""The output of benchmarks: short tables between a page's markers, long ones as CSV."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from rasplens import __version__

RESULTS = Path(__file__).with_name("results")
"""Tables with a row for each case. Their first line says which version drew them."""

Kept = Callable[[str, list[str], list[list[str]]], str]
"""From a name, headings and rows, what a page says: the table itself, or where it is."""


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = (headings, ["---"] * len(headings), *([cell.replace("|", "\\|") for cell in row] for row in rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def show(text: str, path: Path | None, name: str) -> None:
    """Prints what was measured, and writes it into a page if there is to be one."""
    print(text)
    if path is not None:
        write(path, name, text)


def write(path: Path, name: str, text: str) -> None:
    """Replaces what stands between the markers of a name on a page."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found_begin, rest = path.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise SystemExit(f"{path} has no markers {begin} and {end}.")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def inline(name: str, headings: list[str], rows: list[list[str]]) -> str:
    """The table in Markdown."""
    return table(headings, rows)


def as_csv(section: str, folder: Path = RESULTS) -> Kept:
    """Writes tables as CSV, `SECTION-NAME.csv` in a folder; the page says where."""

    def keep(name: str, headings: list[str], rows: list[list[str]]) -> str:
        file = "-".join(filter(None, (section, name))) + ".csv"
        write_csv(folder / file, headings, rows)
        return f"`lab/results/{file}` has each."

    return keep


def write_csv(path: Path, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Writes a table, with the version that drew it in front; `pandas.read_csv(path, comment="#")` reads it."""
    text = pd.DataFrame(rows, columns=list(headings)).to_csv(index=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {drawn_by()}\n{text}")


def drawn_by() -> str:
    """The version, and the commit where there is one."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    return f"RASPLens {__version__}" + (f", commit {found.stdout.strip()}" if found.returncode == 0 else "")
