"""`rasplens run`: a task's program compiled, verified and compared with a learned model, and the report."""

import time
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from rasplens import terminal
from rasplens.compare import Comparison, compare, rank, write_report
from rasplens.compare.pipeline import STAGES
from rasplens.compile import CompiledModel, Verification
from rasplens.learned import pretrained_names
from rasplens.output_files import Destination, file_name
from rasplens.progress import Advance, comparison_report, progress_bar
from rasplens.sources import Studied, learned_model, reference
from rasplens.sources.request import Request
from rasplens.tasks import TASKS, get_task
from rasplens.workflows.compile import verification_values, verify_for_task
from rasplens.workflows.summary import show_accuracy, show_agreement, show_evidence, show_models, show_verdict
from rasplens.workflows.train import recipes_of, trained


def run_task(asked: Request, to: Destination, *, verbose: bool, json: bool, began: float) -> None:
    """Compiles, verifies, compares and writes the report; prints the verdict, or with `verbose` everything.

    Where no model is given and none is shipped, one is trained first. The first program is the one that is asked
    about, others are alternatives. The time that is stated is that since the command began, on the clock of
    `time.perf_counter`.
    """
    task, path = asked.task, next(iter(asked.models), None)
    to.make_folder()
    with progress_bar("compiling") as advance:
        references = [reference(task, program) for program in asked.programs] or [reference(task, None)]
        places = [_places(to.path, "" if not i else one.output) for i, one in enumerate(references)]
        to.check(*chain(*places), refreshed=True)
        for one in references:
            show_agreement(one, task, asked.as_part, is_shown=not json)
        checks = [verify_for_task(compiled, task) for compiled in references]
        learned = _studied(asked, to, advance)
        if path is not None:
            show_accuracy(str(path), learned, task, asked.expected, is_shown=not json)
        comparisons = _compared(references, learned, asked, advance)
        advance("report", len(STAGES), len(STAGES))
        files = [_write(*both, to) for both in zip(comparisons, places, strict=True)]
    seconds = time.perf_counter() - began
    if json:
        values = [_values(*both) for both in zip(comparisons, checks, strict=True)]
        more = {"alternatives": values[1:]} if len(values) > 1 else {}
        terminal.as_json({**values[0], **more, "report": str(files[0]), "seconds": round(seconds, 1)})
        return
    for compiled, comparison, check in zip(references, comparisons, checks, strict=True):
        show_models(compiled, learned, comparison, check)
        if verbose:
            show_evidence(comparison)
        show_verdict(comparison)
    more_said = "" if verbose else f" With all evidence: rasplens show {to.path} --verbose."
    reports = "Report" if len(files) == 1 else "Reports"
    terminal.say(f"{reports}: {', '.join(map(str, files))} ({seconds:.0f} s). Data: {places[0][0]}.{more_said}")


def _studied(asked: Request, to: Destination, advance: Advance) -> Studied:
    """The model that is given, the shipped one, or one that is trained now, and kept in the folder."""
    task, path = asked.task, next(iter(asked.models), None)
    is_shipped = task.name in set(TASKS) & set(pretrained_names()) and get_task(task.name).digest == task.digest
    if path is not None or is_shipped:
        return learned_model(task, path, asked.declared, asked.device)
    own = to.path / "model.safetensors"
    trained(task, recipes_of(task), [0], to, [own], advance)
    return learned_model(task, own)


def _compared(
    references: Sequence[CompiledModel], learned: Studied, asked: Request, advance: Advance
) -> list[Comparison]:
    """The comparison with each program, in the order in which they were given."""
    task, how = asked.task, dict[str, Any]()
    how |= {"config": asked.config, "seed": asked.seed, "as_part": asked.as_part}
    how |= {"vocabulary": learned.vocabulary(task), "progress": comparison_report(advance, references[0].output)}
    if len(references) == 1:
        return [compare(references[0], learned.model, task=task, **how)]
    ranking = rank(references, learned.model, task=task, **how)
    found = {comparison.program: comparison for comparison in ranking.comparisons}
    return [found[compiled.output] for compiled in references]


def _places(folder: Path, program: str) -> tuple[Path, Path]:
    """Where the data and the report of a comparison go; no program stands for the first."""
    stem = f"-{file_name(program)}" if program else ""
    return folder / f"comparison{stem}.json", folder / f"report{stem}.html"


def _write(comparison: Comparison, places: tuple[Path, Path], to: Destination) -> Path:
    """Writes data and report, and returns the report's place."""
    data, report = places
    to.write(data, comparison.save, refreshed=True)
    return to.write(report, partial(write_report, comparison), refreshed=True)


def _values(comparison: Comparison, checks: dict[str, Verification]) -> dict[str, Any]:
    """Return the JSON values that are printed of one comparison."""
    values = {name: value for name, value in comparison.to_dict().items() if name != "tables"}
    return {**values, "verification": {name: verification_values(check) for name, check in checks.items()}}
