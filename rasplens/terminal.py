"""The output of commands: tables for people, JSON for scripts."""

import json
from collections.abc import Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rasplens.model import Transformer

out = Console(highlight=False, soft_wrap=True, markup=False)
err = Console(stderr=True, highlight=False, markup=False)

GAP = 2
"""Between the columns of a table."""

NOTHING = "-"
"""Stands in tables where there is no figure."""


def as_json(values: Any) -> None:
    """Prints JSON and nothing else."""
    typer.echo(json.dumps(values, indent=1, allow_nan=False, default=str))


def say(text: str = "", style: str = "") -> None:
    """Prints a paragraph. Lines break between words, never within one."""
    out.print(Text(text, style=style), soft_wrap=False, overflow="ignore", crop=False)


def table(title: str, headings: list[str], rows: list[list[object]], notes: Sequence[str] = ()) -> None:
    """Prints a table, and notes below it.

    Figures keep their width. Where a line is too long, columns of text break between words. Where that is not
    enough, the table is wider than the terminal: no column disappears.
    """
    cells = [[figure(cell) for cell in row] for row in rows]
    columns = list(zip(headings, *cells, strict=True))
    are_text = [any(_is_text(row[i]) for row in rows) for i in range(len(headings))]
    widths = _widths(columns, are_text)
    grid = Table(box=None, pad_edge=False)
    for heading, width, is_text in zip(headings, widths, are_text, strict=True):
        grid.add_column(heading, width=width, justify="left" if is_text else "right", no_wrap=not is_text)
    for row in cells:
        grid.add_row(*map(Text, row))
    say(title, style="bold")
    Console(width=max(out.width, _line(widths)), highlight=False, markup=False).print(grid)
    for note in notes:
        say(note)
    say()


def _is_text(cell: object) -> bool:
    return isinstance(cell, str) and cell != NOTHING


def _widths(columns: list[tuple[str, ...]], are_text: list[bool]) -> list[int]:
    """Return the width of each column; the widest text is narrowed until all fits, or until words would break."""
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    least = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    while _line(widths) > out.width:
        wide = [i for i, is_text in enumerate(are_text) if is_text and widths[i] > least[i]]
        if not wide:
            break
        widths[max(wide, key=lambda i: widths[i])] -= 1
    return widths


def _line(widths: list[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def figure(value: object) -> str:
    """Return a value as tables show it."""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def shape(model: Transformer) -> dict[str, int]:
    """The size of a transformer in a few figures."""
    config = model.config
    return {
        "layers": config.n_layers,
        "heads": config.n_heads,
        "d_model": config.d_model,
        "d_mlp": config.d_mlp,
        "parameters": model.n_params,
    }
