"""Tables on pages: what the benchmarks measure is written between a page's markers."""

from pathlib import Path


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *rows))


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
