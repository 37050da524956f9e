"""The command line as a process: exit codes, and errors in one line."""

import io
import os
import re
import sys
import time
import warnings
from typing import Any

import typer

from rasplens import RaspLensError
from rasplens.cli.app import app

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

AFTER = "Run the same command again: training resumes where it stopped, anything else starts over."
"""The message after Ctrl-C."""


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line; an error that the user can fix is one line on stderr and exit code 2."""
    started = time.perf_counter()
    warnings.showwarning = _show_warning
    # Read when PyTorch loads OpenMP: waiting threads sleep, and leave the processors to others.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):  # a character that the terminal cannot show becomes its escape code
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(arguments, prog_name="rasplens", standalone_mode=False)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        message = _message(error)
        if message is None:
            raise
        typer.echo(f"rasplens: {message}", err=True)
        sys.exit(2)
    if code == INTERRUPTED:  # typer turns Ctrl-C within a command into an exit code
        typer.echo(f"Stopped after {time.perf_counter() - started:.0f} s. {AFTER}", err=True)
    sys.exit(code if isinstance(code, int) else 0)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """One line, without the place in our code that it comes from."""
    typer.echo(f"rasplens: {message}", err=True)


PLAIN_WORDS = (
    (r"^No such option: --(gpu|cuda).*$", "There is no --gpu: --device cuda runs a language model on one"),
    (r"^Invalid value for '(.*?)': (Value error, )?", r"\1: "),
    (r"Input should be a valid integer, .*$", "it takes a whole number"),
    (r"Input should be a valid number, .*$", "it takes a number"),
    (r"Input should be (greater|less) than or equal to ", r"it has to be \1 than or equal to "),
)
"""What typer says of a value, and how it is said here."""


def _plainly(text: str) -> str:
    for said, plain in PLAIN_WORDS:
        text = re.sub(said, plain, text)
    return text


def _message(error: Any) -> str | None:
    """Return one line for an error that the user can fix; None for a bug of our own."""
    if hasattr(error, "format_message"):  # a usage error of the command line itself
        return f"{_plainly(error.format_message().rstrip('.'))}. Try --help."
    if isinstance(error, RaspLensError):
        return str(error) if "\n" in str(error) and "^" in str(error) else " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return "Out of memory. Shorten the sequences, or reduce the vocabulary or the inputs."
    return None
