"""`rasplens show`: comparisons that were made before, from their files; nothing is computed anew."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rasplens import terminal
from rasplens.compare import Comparison
from rasplens.errors import RaspLensError
from rasplens.workflows.summary import show_evidence, show_verdict

DATA, REPORT = "comparison", "report"
"""The names of the two files of a comparison begin so; what follows is the same."""

HEADINGS = ["run", "task", "program", "verdict", "same\nanswers", "same\nvariables", "same\nroutes"]


def show_runs(paths: Sequence[Path], *, verbose: bool, json: bool) -> None:
    """Prints the verdict of a run, or a table of several.

    Args:
        paths: Files of comparisons, folders of runs, or folders of these.
        verbose: Whether to print all evidence, as `rasplens run --verbose` does.
        json: Whether to print JSON.

    Raises:
        RaspLensError: If there is no comparison, or one cannot be read.
    """
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    found = list(_loaded(files, paths))
    if json:
        terminal.as_json([{"file": str(file), **one.to_dict()} for file, one in found])
        return
    if len(found) > 1 and not verbose:
        rows: list[list[object]] = [
            [_run(file), one.task, one.program, one.verdict.answer, *one.verdict.levels.values()]
            for file, one in found
        ]
        terminal.table(f"{len(found)} comparisons", HEADINGS, rows)
        return
    for file, one in found:
        _show(file, one, verbose)


def _loaded(files: Sequence[Path], named: Sequence[Path]) -> Iterator[tuple[Path, Comparison]]:
    """The comparisons of files; of several that nobody named, those that can be read.

    Raises:
        RaspLensError: If one that was named, or the only one, cannot be read.
    """
    for file in files:
        try:
            yield file, Comparison.load(file)
        except RaspLensError as error:
            if file in named or len(files) == 1:
                raise
            terminal.err.print(f"Left out: {error}", soft_wrap=True)


def _show(file: Path, comparison: Comparison, verbose: bool) -> None:
    right = ", ".join(f"{side} {accuracy.token:.3f}" for side, accuracy in comparison.accuracies.items())
    terminal.say(f"{comparison.task}: the learned model ({comparison.learned_origin}) and {comparison.program!r}")
    terminal.say(f"Answers right on {comparison.n_inputs:,} held-out inputs: {right}.")
    terminal.say()
    if verbose:
        show_evidence(comparison)
    show_verdict(comparison)
    report = file.with_name(file.name.replace(DATA, REPORT, 1)).with_suffix(".html")
    terminal.say(f"Report: {report}." if report.exists() else f"There is no report {report}.")


def _run(file: Path) -> str:
    """A comparison's folder, if it is the first one there."""
    return str(file.parent if file.stem == DATA else file)


def _files(path: Path) -> Iterator[Path]:
    """The comparisons of a path: itself, those of a run, or those of all runs in a folder.

    Raises:
        RaspLensError: If there are none.
    """
    if path.is_file():
        yield path
        return
    if not path.exists():
        raise RaspLensError(f"There is no file or folder {path}. `rasplens run` writes to runs/TASK.")
    found = list(path.glob(f"{DATA}*.json")) or list(path.glob(f"*/{DATA}*.json"))
    if not found:
        raise RaspLensError(f"{path} holds no {DATA}.json of `rasplens run`, nor does a folder in it.")
    yield from sorted(found, key=lambda file: (file.parent, file.stem != DATA, file.name))
