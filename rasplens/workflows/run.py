"""`rasplens run`: a task's program compiled, verified and compared with a learned model, and the report."""

import time
from pathlib import Path

from rasplens import terminal
from rasplens.compare import CompareConfig, compare, write_report
from rasplens.compare.pipeline import STAGES
from rasplens.sources import learned_model, reference
from rasplens.tasks import get_task
from rasplens.workflows.progress import comparison_report
from rasplens.workflows.summary import show_evidence, show_models, show_verdict
from rasplens.workflows.verify import verification_values, verify_for_task


def run_task(
    task_name: str,
    path: Path | None,
    program: str | None,
    out: Path,
    config: CompareConfig,
    seed: int,
    verbose: bool,
    json: bool,
) -> None:
    """Compiles, verifies, compares and writes the report; prints the verdict, or with `verbose` everything."""
    started = time.perf_counter()
    task = get_task(task_name)
    learned = learned_model(task, path)
    out.mkdir(parents=True, exist_ok=True)
    with terminal.progress("compiling") as advance:
        compiled = reference(task, program)
        checks = verify_for_task(compiled, task)
        report = comparison_report(compiled.output, advance)
        comparison = compare(compiled, learned, task=task, config=config, seed=seed, progress=report)
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
    if verbose:
        show_evidence(comparison)
    show_verdict(comparison)
    more = "" if verbose else " All evidence here: --verbose."
    terminal.say(f"Report: {out / 'report.html'} ({seconds:.0f} s). Data: {out / 'comparison.json'}.{more}")
