"""The options of every command, as they stand on the page of the command line.

python -m lab.command_line --write docs/reference/command-line.md
"""

import argparse
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.models import OptionInfo

from lab.page import show, table
from rasplens.cli.app import app

EVERYWHERE = "json", "quiet", "no_color", "force"
"""Options of many commands, which are explained once."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to write into")
    show(options(), parser.parse_args().write, "options")


def options() -> str:
    """A section for each command, with a line for each of its arguments and options."""
    callbacks = {
        one.name or one.callback.__name__: one.callback for one in app.registered_commands if one.callback
    }
    rows = {name: list(_lines(callback)) for name, callback in sorted(callbacks.items())}
    headings = ["option", "what it does"]
    sections = [f"### `rasplens {name}`\n\n{table(headings, found)}" for name, found in rows.items() if found]
    return "\n\n".join(sections)


def _lines(callback: Callable[..., Any]) -> Iterator[list[str]]:
    for name, hint in get_type_hints(callback, include_extras=True).items():
        if get_origin(hint) is not Annotated or name in EVERYWHERE:
            continue
        kind, info = get_args(hint)
        takes = info.metavar if info.metavar is not None else "|".join(_choices(kind))
        said = takes
        if isinstance(info, OptionInfo):
            # Within `Annotated`, typer keeps the first name where a default would be.
            told = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str)]
            option = next(iter(told), f"--{name.replace('_', '-')}")
            said = f"{option} {takes}".strip()
        yield [f"`{said}`", " ".join((info.help or "").split())]


def _choices(kind: Any) -> list[str]:
    """The words that an option takes, if it is a choice."""
    found = next((one for one in (kind, *get_args(kind)) if isinstance(one, type) and issubclass(one, Enum)), None)
    return [] if found is None else [str(one.value) for one in found]


if __name__ == "__main__":
    main()
