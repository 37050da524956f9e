"""Models that learned a task: trained here, shipped, or imported."""

from typing import Any

from rasplens.learned.checkpoint import import_checkpoint
from rasplens.learned.initialise import untrained, untrained_like
from rasplens.learned.learned import LearnedModel, load_learned
from rasplens.learned.pretrained import load_pretrained, pretrained_names
from rasplens.learned.recipes import RECIPES, Architecture, Recipe, get_recipe

__all__ = [
    "RECIPES",
    "Architecture",
    "LearnedModel",
    "Recipe",
    "get_recipe",
    "import_checkpoint",
    "load_learned",
    "load_pretrained",
    "pretrained_names",
    "train",
    "untrained",
    "untrained_like",
    "use_all_cores",
]


def __getattr__(name: str) -> Any:
    """Imports JAX where it is used: loading a model does not need it."""
    if name == "train":
        from rasplens.learned.trainer import train

        return train
    if name == "use_all_cores":
        from rasplens.learned.steps import use_all_cores

        return use_all_cores
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
