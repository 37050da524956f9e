"""`rasplens train`: models of a task, one for each seed."""

from pathlib import Path

from rasplens import terminal
from rasplens.learned import get_recipe, read_recipe, train_many, use_all_cores
from rasplens.tasks import get_task
from rasplens.workflows.finished_training import trained_before
from rasplens.workflows.output_files import check_file
from rasplens.workflows.progress import training_report


def train_and_show(task_name: str, recipe: str, seeds: list[int], out: Path, json: bool) -> None:
    """Trains a model for each seed and stores it; a training that was interrupted goes on where it was.

    One that is finished is shown again.

    Raises:
        ValueError: If there is no place to write to, or another model is there.
    """
    task, is_file = get_task(task_name), recipe.endswith(".toml")
    chosen = read_recipe(recipe) if is_file else get_recipe(task.name, recipe)
    check_file(out, f"{task.name}.safetensors")
    paths = [out] if len(seeds) == 1 else [out.with_stem(f"{out.stem}-{seed}") for seed in seeds]
    before = [trained_before(path, task.name, chosen, seed) for path, seed in zip(paths, seeds, strict=True)]
    models = [model for model in before if model is not None]
    is_new = len(models) < len(paths)
    if is_new:
        state = out.with_suffix(".training.safetensors")
        use_all_cores()
        with terminal.progress(f"{task.name}: JAX compiles the training step") as advance:
            report = training_report(chosen.steps, len(seeds), advance)
            models = train_many(task, chosen if is_file else recipe, seeds, progress=report, state_path=state)
        for model, path in zip(models, paths, strict=True):
            model.save(path)
        state.unlink()
    if json:
        values = [
            {"task": task.name, "path": str(path), **model.provenance}
            for model, path in zip(models, paths, strict=True)
        ]
        terminal.as_json(values[0] if len(seeds) == 1 else values)
        return
    for model, path in zip(models, paths, strict=True):
        accuracy = model.provenance["accuracy"]
        terminal.out.print(
            f"{task.name}: {accuracy['token']:.4f} of the answers and {accuracy['sequence']:.4f} of the inputs "
            f"right on held-out inputs after {model.provenance['steps']:,} steps. Model: {path}"
            f"{'' if is_new else ', which was there already: nothing was trained.'}"
        )
