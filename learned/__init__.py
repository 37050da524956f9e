"""Models that learned a task: trained here, shipped, or imported."""

from typing import Any

from rasplens.learned.compressor import CompressedModel, CompressionRecipe, compress, load_compressed
from rasplens.learned.importers.checkpoint import import_checkpoint
from rasplens.learned.initialisation import untrained, untrained_like
from rasplens.learned.learned_model import LearnedModel, load_learned
from rasplens.learned.recipes import RECIPES, Architecture, Recipe, get_recipe
from rasplens.learned.zoo import load_pretrained, pretrained_names

__all__ = [
    "RECIPES",
    "Architecture",
    "CompressedModel",
    "CompressionRecipe",
    "LearnedModel",
    "Recipe",
    "compress",
    "get_recipe",
    "import_checkpoint",
    "load_compressed",
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
        from rasplens.learned.training.trainer import train

        return train
    if name == "use_all_cores":
        from rasplens.learned.training.steps import use_all_cores

        return use_all_cores
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
