"""`rasplens compare`: which of the programs each model implements."""

from pathlib import Path

from rasplens import terminal
from rasplens.compare import CompareConfig, rank, write_report
from rasplens.sources import learned_model, reference
from rasplens.tasks import get_task
from rasplens.workflows.progress import comparison_report
from rasplens.workflows.verify import verify_for_task

SUMMARY_HEADINGS = (
    "model: program", "verdict", "same\nanswers", "same\nvariables", "same\nroutes",
)  # fmt: skip
SUMMARY_KEY = """\
verdict         a conjunction of the three levels: the same answers, variables (algorithm) and routes (circuit)"""


def compare_and_show(
    task_name: str,
    paths: list[Path],
    programs: list[str] | None,
    config: CompareConfig,
    seed: int,
    out: Path | None,
    json: bool,
) -> None:
    """Compares every model (the shipped one, if none is given) with every program, and ranks the programs."""
    task = get_task(task_name)
    models = [(str(path), learned_model(task, path)) for path in paths] or [("shipped", learned_model(task, None))]
    references = [reference(task, program) for program in programs or task.programs]
    for compiled in references:
        verify_for_task(compiled, task)
    rankings = {}
    with terminal.progress("comparing") as advance:
        for name, learned in models:
            report = comparison_report(name, advance)
            rankings[name] = rank(references, learned, task=task, config=config, seed=seed, progress=report)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, ranking in rankings.items():
            for comparison in ranking.comparisons:
                write_report(comparison, out / f"{Path(name).stem}_{comparison.program}.html")
    if json:
        values = [
            {"model": name, "verdict": ranking.verdict, **comparison.to_dict()}
            for name, ranking in rankings.items()
            for comparison in ranking.comparisons
        ]
        terminal.as_json(values)
        return
    rows: list[list[object]] = [
        [
            f"{name}: {one.program}",
            one.verdict.answer,
            *one.verdict.levels.values(),
        ]
        for name, ranking in rankings.items()
        for one in ranking.comparisons
    ]
    terminal.table(f"{task.name}: models against programs", list(SUMMARY_HEADINGS), rows)
    for name, ranking in rankings.items():
        terminal.out.print(f"{name} → {ranking.verdict}")
        for sentence in ranking.not_told_apart:
            terminal.out.print(sentence)
    terminal.out.print(SUMMARY_KEY)
    if out is not None:
        terminal.out.print(f"Reports: {out}")
