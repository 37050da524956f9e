"""`rasplens sweep`: comparisons of a file, each done once, in one table."""

from pathlib import Path

from rasplens import terminal
from rasplens.progress import progress_bar, sweep_report
from rasplens.sweeps import sweep
from rasplens.sweeps.comparison_jobs import read_jobs
from rasplens.sweeps.sweep import TABLE

SHOWN = {
    "task": "task", "program_name": "program", "model": "model", "recipe": "recipe", "seed": "seed",
    "verdict": "verdict", "same answers": "same\nanswers", "same variables": "same\nvariables",
    "same routes": "same\nroutes", "error": "error",
}  # fmt: skip
"""The heading of each column that is shown; one in which nothing stands is left out."""


def sweep_and_show(path: Path, folder: Path, processes: int | None, json: bool) -> None:
    """Does the comparisons of a file, and shows them; those that the folder has are not done again.

    Raises:
        RaspLensError: If the file describes no comparisons, or the folder cannot be written to.
    """
    jobs = read_jobs(path)
    with progress_bar("comparing") as advance:
        found = sweep(jobs, folder, processes=processes, progress=sweep_report(advance))
    if json:
        terminal.as_json(found.astype(object).where(found.notna(), None).to_dict(orient="records"))
        return
    columns = [name for name in SHOWN if name in found and found[name].notna().any()]
    cells = found[columns].astype(object).where(found[columns].notna(), terminal.NOTHING).to_numpy().tolist()
    terminal.table(f"{len(found)} comparisons", [SHOWN[name] for name in columns], cells)
    terminal.out.print(f"Table: {folder / TABLE}")
