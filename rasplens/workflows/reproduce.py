"""`rasplens reproduce`: a published model trained anew, and what was found in it."""

from dataclasses import asdict
from pathlib import Path

from rasplens import terminal
from rasplens.errors import RaspLensError, meant
from rasplens.learned import get_recipe, published_grid, use_all_cores
from rasplens.model.storage import write_atomically
from rasplens.output_files import Destination, check_state, trained_before
from rasplens.progress import progress_bar, training_report
from rasplens.reproductions import REPRODUCTIONS
from rasplens.tasks import get_task


def reproduce_and_show(name: str, to: Destination, json: bool) -> None:
    """Trains a published model anew, and shows its figures beside the published ones.

    One that is trained already is shown again.

    Raises:
        RaspLensError: If there is no such model, or another model is where it would be written.
    """
    if name == "grid":
        _grid_and_show(to, json)
        return
    if name not in REPRODUCTIONS:
        raise RaspLensError(
            f"There is no reproduction {name!r}.{meant(name, (*REPRODUCTIONS, 'grid'))} The reproductions are "
            f"{', '.join(REPRODUCTIONS)} and grid."
        )
    entry = REPRODUCTIONS[name]
    to.make_folder()
    path, state = to.path / f"{name}.safetensors", to.path / f"{name}.training.safetensors"
    recipe = get_recipe(entry.task, entry.recipe)
    learned = trained_before(to, path, get_task(entry.task), [recipe], entry.seed)
    is_new = learned is None
    if learned is None:
        check_state(to, state)
        use_all_cores()
        with progress_bar(f"training {name}") as advance:
            report = training_report(advance, recipe.steps)
            learned = entry.train(progress=report, state_path=state)
        to.write(path, learned.save)
        state.unlink()
    findings = entry.check(learned)
    figures = [_write(to, page, text) for page, text in entry.pages(learned).items()]
    if json:
        values = [asdict(finding) for finding in findings]
        terminal.as_json(
            {"name": name, "model": str(path), "figures": [str(f) for f in figures], "findings": values}
        )
        return
    rows: list[list[object]] = [[f.measure, f.theirs, f.ours, _mark(f.holds)] for f in findings]
    terminal.table(f"{entry.model}: {entry.source}", ["", "theirs", "ours", "holds"], rows)
    before = "" if is_new else ", which already existed: nothing was trained."
    terminal.out.print(f"Model: {path}{before}   Figures: {', '.join(str(figure) for figure in figures)}")


def _write(to: Destination, name: str, text: str) -> Path:
    """Writes a file into the folder, complete or not at all, and returns its place."""
    return to.write(to.path / name, lambda path: write_atomically(path, text.encode()), refreshed=True)


def _grid_and_show(to: Destination, json: bool) -> None:
    to.make_folder()
    to.check(to.path / "grid.csv")
    use_all_cores()
    with progress_bar("training the grid") as advance:
        table = published_grid.train_grid(
            get_task("compression_notebook"), published_grid.GRID, published_grid.STEPS, progress=advance
        )
    path = _write(to, "grid.csv", table.to_csv(index=False))
    if json:
        terminal.as_json(table.to_dict("records"))
        return
    terminal.table("The notebook's grid, on held-out pairs", list(table), table.to_numpy().tolist())
    terminal.out.print(f"Table: {path}")


def _mark(holds: bool | None) -> str:
    return {True: "yes", False: "NO", None: ""}[holds]
