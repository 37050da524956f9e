"""The shipped models: one per task, trained by this package."""

from importlib.resources import as_file, files

from rasplens.errors import RaspLensError
from rasplens.learned.learned_model import LearnedModel, load_learned


def pretrained_names() -> list[str]:
    """The tasks for which a trained model is shipped."""
    folder = files("rasplens.learned") / "pretrained"
    return sorted(file.name.removesuffix(".safetensors") for file in folder.iterdir())


def load_pretrained(task: str) -> LearnedModel:
    """Return the shipped model for a task; its provenance has the training command, seed and accuracies.

    Raises:
        RaspLensError: If none is shipped for the task.
    """
    if task not in pretrained_names():
        raise RaspLensError(
            f"No trained model is shipped for the task {task!r}; there are models for "
            f"{', '.join(pretrained_names())}. Train one with `rasplens train`, or import a checkpoint."
        )
    with as_file(files("rasplens.learned") / "pretrained" / f"{task}.safetensors") as path:
        return load_learned(path)
