"""Models that learned a task: trained here, shipped, or imported; and compressed ones."""

from typing import TYPE_CHECKING, Any

from rasplens.learned.architecture import Architecture
from rasplens.learned.compressor import (
    CompressedModel,
    CompressionRecipe,
    compress,
    compress_many,
    load_compressed,
)
from rasplens.learned.config import TrainConfig
from rasplens.learned.importers.checkpoint import import_checkpoint
from rasplens.learned.initialisation import untrained, untrained_like
from rasplens.learned.learned_model import LearnedModel, load_learned
from rasplens.learned.recipes import RECIPES, Recipe, get_recipe
from rasplens.learned.zoo import load_pretrained, pretrained_names

if TYPE_CHECKING:
    from rasplens.learned.training.steps import use_all_cores
    from rasplens.learned.training.trainer import train, train_many

__all__ = [
    "RECIPES",
    "Architecture",
    "CompressedModel",
    "CompressionRecipe",
    "LearnedModel",
    "Recipe",
    "TrainConfig",
    "compress",
    "compress_many",
    "get_recipe",
    "import_checkpoint",
    "load_compressed",
    "load_learned",
    "load_pretrained",
    "pretrained_names",
    "train",
    "train_many",
    "untrained",
    "untrained_like",
    "use_all_cores",
]


def __getattr__(name: str) -> Any:
    """A name that needs JAX, imported where it is used: loading a model does not need it."""
    if name in ("train", "train_many"):
        from rasplens.learned.training import trainer

        return getattr(trainer, name)
    if name == "use_all_cores":
        from rasplens.learned.training.steps import use_all_cores

        return use_all_cores
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
