"""What commands print: tables for people, JSON for scripts, progress on the error stream."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from rasplens.compile import CompiledModel
from rasplens.model import Transformer

out = Console(highlight=False, soft_wrap=True, markup=False)
err = Console(stderr=True, highlight=False, markup=False)

Advance = Callable[[str, int, int], None]
"""Called with (what is being done, how many steps are done, of how many)."""


@contextmanager
def progress(description: str) -> Iterator[Advance]:
    """A progress bar on the error stream, if that is a terminal, for as long as the context lasts."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    hidden = not err.is_terminal
    with Progress(*columns, TimeElapsedColumn(), console=err, transient=True, disable=hidden) as bar:
        job = bar.add_task(description, total=None)

        def advance(what: str, done: int, total: int) -> None:
            bar.update(job, description=what, completed=done, total=total)

        yield advance


def as_json(values: Any) -> None:
    """Prints JSON and nothing else."""
    typer.echo(json.dumps(values, indent=1, allow_nan=False, default=str))


def table(title: str, headings: list[str], rows: list[list[object]]) -> None:
    """Prints a table; the first column is text, the others are figures."""
    grid = Table(title=Text(title), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for i, heading in enumerate(headings):
        grid.add_column(heading, justify="left" if i == 0 else "right", overflow="fold", no_wrap=i > 0)
    for row in rows:
        grid.add_row(*(Text(figure(cell)) for cell in row))
    out.print(grid)
    out.print()


def figure(value: object) -> str:
    """A number as it stands in tables."""
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


def anatomy(compiled: CompiledModel) -> list[dict[str, Any]]:
    """What each variable of a compiled model is, where it stands and what computes it."""
    computed_by = {name: f"L{layer}H{head}" for (layer, head), name in compiled.heads.items()}
    computed_by |= {
        name: f"L{layer} neurons {start}-{end - 1}" for (layer, start, end), name in compiled.neurons.items()
    }
    return [
        {
            "variable": name,
            "encoding": variable.encoding.value,
            "values": len(variable.values),
            "directions": _ranges(variable.directions.tolist()),
            "computed by": computed_by.get(name, "a view of others" if variable.is_view else "embedding"),
        }
        for name, variable in compiled.variables.items()
    ]


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers, runs of them as `first-last`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
