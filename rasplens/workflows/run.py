"""`rasplens run`: a task's program compiled, verified and compared with a learned model, and the report."""

import time
from pathlib import Path

from rasplens import terminal
from rasplens.compare import CompareConfig, Comparison, compare, write_report
from rasplens.compare.pipeline import STAGES
from rasplens.compile import CompiledModel
from rasplens.sources import Studied, learned_model, reference
from rasplens.tasks import Task, get_task
from rasplens.workflows.summary import show_comparison, show_models
from rasplens.workflows.verify import verification_values, verify_for_task


def run_task(
    task_name: str, path: Path | None, program: str | None, out: Path, config: CompareConfig, seed: int, json: bool
) -> None:
    """Compiles, verifies, compares and writes the report."""
    started = time.perf_counter()
    task = get_task(task_name)
    learned = learned_model(task, path)
    out.mkdir(parents=True, exist_ok=True)
    with terminal.progress("compiling") as advance:
        compiled = reference(task, program)
        checks = verify_for_task(compiled, task)
        comparison = _compare(compiled, learned, task, config, seed, advance)
        advance("report", len(STAGES), len(STAGES))
        comparison.save(out / "comparison.json")
        write_report(comparison, out / "report.html")
    seconds = time.perf_counter() - started
    if json:
        values = comparison.to_dict()
        del values["tables"]
        values["verification"] = {name: verification_values(check) for name, check in checks.items()}
        terminal.as_json({**values, "report": str(out / "report.html"), "seconds": round(seconds, 1)})
        return
    show_models(compiled, learned, comparison, checks)
    show_comparison(comparison)
    terminal.out.print(f"Report: {out / 'report.html'}   Figures: {out / 'comparison.json'}   ({seconds:.0f} s)")


def _compare(
    compiled: CompiledModel,
    learned: Studied,
    task: Task,
    config: CompareConfig,
    seed: int,
    advance: terminal.Advance,
) -> Comparison:
    def begin(stage: str) -> None:
        advance(f"{compiled.output}: {stage}", STAGES.index(stage), len(STAGES))

    return compare(compiled, learned, task=task, config=config, seed=seed, progress=begin)
