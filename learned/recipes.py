"""How models are trained: an architecture and an optimisation, by task and name.

The `published` recipes have the hyperparameters of the published models; the `fast` ones reach the same in fewer
steps, by warm-up, cosine decay and clipping.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rasplens.errors import RaspLensError
from rasplens.learned.architecture import Architecture
from rasplens.learned.intervals import NOT_NEGATIVE, POSITIVE
from rasplens.learned.optimisation import check_optimisation
from rasplens.tasks import Task


@dataclass(frozen=True)
class Recipe:
    """An architecture and how to train it with AdamW.

    Attributes:
        architecture: What is trained.
        batch_size: Inputs per step.
        steps: The most steps.
        learning_rate: Its peak.
        weight_decay: Decoupled, on every weight.
        b2: Decay of the second moment.
        warmup: Steps of linear warm-up; 0 for a constant rate, else cosine decay to zero follows.
        clip: Global norm that gradients are clipped to; 0 for no clipping.
        stop_at: Token accuracy at which training stops early, on a fixed sample of inputs that are not held
            out; above 1 it never does.
        every_position: Whether the loss is the next token's at every position, instead of the answer's where
            the task determines one.

    Raises:
        RaspLensError: If a number is out of range.
    """

    architecture: Architecture
    batch_size: int
    steps: int
    learning_rate: float
    weight_decay: float
    b2: float = 0.999
    warmup: int = 0
    clip: float = 0.0
    stop_at: float = 1.0
    every_position: bool = False

    def __post_init__(self) -> None:
        check_optimisation(self, clip=NOT_NEGATIVE, stop_at=POSITIVE)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Recipe":
        """Return the recipe that `to_dict` described; missing fields have their defaults."""
        return cls(**{**values, "architecture": Architecture(**values["architecture"])})

    def objective(self, task: Task) -> Task:
        """The task as the loss sees it; accuracy is always that of the task itself."""
        return task.next_token() if self.every_position else task


_SORT = Architecture(n_layers=1, n_heads=1, d_model=128, d_head=128)
_TWO_LAYERS = Architecture(n_layers=2, n_heads=1, d_model=64, d_head=64, identity_v=True, identity_o=True)
_THREE_LAYERS = Architecture(n_layers=3, n_heads=1, d_model=64, d_head=64, identity_v=True, identity_o=True)
_NARROW = Architecture(n_layers=3, n_heads=1, d_model=8, d_head=8, identity_v=True, identity_o=True)
_COPY = Architecture(n_layers=1, n_heads=4, d_model=32, d_head=8, positions="sinusoidal_qk")
_SMEARED = Architecture(n_layers=1, n_heads=4, d_model=32, d_head=8, positions="sinusoidal_qk", smeared_keys=True)
_INDUCTION = Architecture(n_layers=2, n_heads=1, d_model=32, d_head=32, bias=True)
RECIPES: Mapping[str, Mapping[str, Recipe]] = {
    "induction": {
        "fast": Recipe(_INDUCTION, 256, 6_000, 5e-3, 0.05, b2=0.99, warmup=100, clip=1.0, stop_at=2.0),
    },
    "sort": {
        "fast": Recipe(_SORT, 256, 3_000, 1e-2, 0.01, b2=0.98, warmup=200, clip=1.0),
        "published": Recipe(_SORT, 256, 10_000, 1e-3, 0.01),
    },
    "copy": {
        "fast": Recipe(_SMEARED, 256, 3_000, 1e-2, 0.01, b2=0.98, warmup=200, clip=1.0),
        "published": Recipe(_COPY, 256, 10_000, 1e-3, 1.0, every_position=True),
        "smeared": Recipe(_SMEARED, 256, 10_000, 1e-3, 1.0, every_position=True),
    },
    "compression": {
        "fast": Recipe(_TWO_LAYERS, 2048, 16_000, 5e-3, 0.03, warmup=200, clip=1.0, stop_at=0.999),
        "published": Recipe(_TWO_LAYERS, 2048, 50_000, 1e-3, 0.01, stop_at=0.999),
        "three_layers": Recipe(_THREE_LAYERS, 2048, 4_000, 2e-3, 0.01, warmup=200, clip=1.0, stop_at=0.9999),
    },
    "compression_notebook": {
        "fast": Recipe(_NARROW, 1024, 10_000, 5e-3, 0.03, warmup=500, clip=1.0, stop_at=2.0),
        "published": Recipe(_NARROW, 128, 300_000, 1e-3, 0.01, stop_at=0.999),
    },
}
"""The recipes of each task; the first is the default."""


_ATTENTION_ONLY = Architecture(n_layers=2, n_heads=4, d_model=64, d_head=16, bias=True)
_WITH_MLPS = Architecture(n_layers=2, n_heads=4, d_model=64, d_head=16, d_mlp=256, bias=True)
GENERAL: Mapping[str, Recipe] = {
    "fast": Recipe(_ATTENTION_ONLY, 256, 4_000, 3e-3, 0.01, b2=0.98, warmup=200, clip=1.0),
    "mlp": Recipe(_WITH_MLPS, 256, 6_000, 3e-3, 0.01, b2=0.98, warmup=200, clip=1.0),
}
"""The recipes of every other task, such as that of a user's own program: attention-only, or with MLPs."""


def default_recipes(task: str) -> tuple[str, ...]:
    """Return the recipes to try on a task, one after the other, until one learns it."""
    return ("fast",) if task in RECIPES else tuple(GENERAL)


def get_recipe(task: str, name: str) -> Recipe:
    """A recipe by task and name.

    Raises:
        RaspLensError: If the task has no such recipe.
    """
    recipes = RECIPES.get(task, GENERAL)
    if name not in recipes:
        raise RaspLensError(f"Task {task!r} has no recipe {name!r}. Its recipes are {', '.join(recipes)}.")
    return recipes[name]
