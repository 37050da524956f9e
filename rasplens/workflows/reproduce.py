"""`rasplens reproduce`: a published model trained anew, and what was found in it."""

from dataclasses import asdict
from pathlib import Path

from rasplens import terminal
from rasplens.errors import RaspLensError
from rasplens.learned import get_recipe, published_grid, use_all_cores
from rasplens.progress import progress_bar, training_report
from rasplens.reproductions import REPRODUCTIONS
from rasplens.tasks import get_task
from rasplens.workflows.output_files import trained_before


def reproduce_and_show(name: str, out: Path, json: bool) -> None:
    """Trains a published model anew, and shows its figures beside the published ones.

    One that is trained already is shown again.

    Raises:
        RaspLensError: If there is no such model, or another model is where it would be written.
    """
    use_all_cores()
    if name == "grid":
        _grid_and_show(out, json)
        return
    if name not in REPRODUCTIONS:
        raise RaspLensError(f"There is no reproduction {name!r}. There are {', '.join(REPRODUCTIONS)} and grid.")
    entry = REPRODUCTIONS[name]
    out.mkdir(parents=True, exist_ok=True)
    path, state = out / f"{name}.safetensors", out / f"{name}.training.safetensors"
    recipe = get_recipe(entry.task, entry.recipe)
    learned = trained_before(path, get_task(entry.task), [recipe], entry.seed)
    is_new = learned is None
    if learned is None:
        with progress_bar(f"training {name}") as advance:
            report = training_report(advance, recipe.steps)
            learned = entry.train(progress=report, state_path=state)
        learned.save(path)
        state.unlink()
    findings = entry.check(learned)
    figures = entry.write_figures(learned, out)
    if json:
        values = [asdict(finding) for finding in findings]
        terminal.as_json(
            {"name": name, "model": str(path), "figures": [str(f) for f in figures], "findings": values}
        )
        return
    rows: list[list[object]] = [[f.measure, f.theirs, f.ours, _mark(f.holds)] for f in findings]
    terminal.table(f"{entry.model}: {entry.source}", ["", "theirs", "ours", "holds"], rows)
    before = "" if is_new else ", which was there already: nothing was trained."
    terminal.out.print(f"Model: {path}{before}   Figures: {', '.join(str(figure) for figure in figures)}")


def _grid_and_show(out: Path, json: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with progress_bar("training the grid") as advance:
        table = published_grid.train_grid(
            get_task("compression_notebook"), published_grid.GRID, published_grid.STEPS, progress=advance
        )
    table.to_csv(out / "grid.csv", index=False)
    if json:
        terminal.as_json(table.to_dict("records"))
        return
    terminal.table("The notebook's grid, on held-out pairs", list(table), table.to_numpy().tolist())
    terminal.out.print(f"Table: {out / 'grid.csv'}")


def _mark(holds: bool | None) -> str:
    return {True: "yes", False: "NO", None: ""}[holds]
