"""Models that were trained before: a finished training is shown again, and no other model is overwritten."""

from pathlib import Path

from rasplens.learned import LearnedModel, Recipe, load_learned
from rasplens.model import StorageError


def trained_before(path: Path, task: str, recipe: Recipe, seed: int) -> LearnedModel | None:
    """The model of this very training, if it is there; None if nothing is.

    Raises:
        ValueError: If something else is there.
    """
    if not path.exists():
        return None
    try:
        model = load_learned(path)
    except StorageError:
        raise ValueError(
            f"{path} is there already, and no such model. Give another --out, or delete it."
        ) from None
    provenance = model.provenance
    same = task, recipe.to_dict(), seed
    if (model.task, provenance.get("recipe"), provenance.get("seed")) != same:
        raise ValueError(
            f"{path} holds another model, {model.origin} on {model.task}. Give another --out, or delete it."
        )
    return model
