"""The names of the package, each imported from its module when it is first used."""

from .architecture import (
    Architecture,
)
from .compressor import (
    CompressedModel,
    CompressionRecipe,
    compress,
    compress_many,
    load_compressed,
)
from .config import (
    TrainConfig,
)
from .importers.adapter import (
    AdaptedModel,
    adapt,
)
from .importers.checkpoint import (
    import_checkpoint,
)
from .importers.huggingface import (
    load_huggingface,
)
from .initialisation import (
    untrained,
    untrained_like,
)
from .learned_model import (
    LearnedModel,
    load_learned,
)
from .recipe_files import (
    read_recipe,
    read_siit_recipe,
)
from .recipes import (
    RECIPES,
    Recipe,
    get_recipe,
)
from .siit.circuit import (
    Node,
    circuit_of,
)
from .siit.implementation import (
    SIITModel,
    load_implementation,
    train_to_implement,
)
from .siit.recipe import (
    SIITRecipe,
    ordinary_architecture,
)
from .training.steps import (
    use_all_cores,
)
from .training.trainer import (
    train,
    train_many,
)
from .zoo import (
    load_pretrained,
    pretrained_names,
)

__all__ = [
    "RECIPES",
    "AdaptedModel",
    "Architecture",
    "CompressedModel",
    "CompressionRecipe",
    "LearnedModel",
    "Node",
    "Recipe",
    "SIITModel",
    "SIITRecipe",
    "TrainConfig",
    "adapt",
    "circuit_of",
    "compress",
    "compress_many",
    "get_recipe",
    "import_checkpoint",
    "load_compressed",
    "load_huggingface",
    "load_implementation",
    "load_learned",
    "load_pretrained",
    "ordinary_architecture",
    "pretrained_names",
    "read_recipe",
    "read_siit_recipe",
    "train",
    "train_many",
    "train_to_implement",
    "untrained",
    "untrained_like",
    "use_all_cores",
]
