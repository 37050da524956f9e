"""The grid of architectures that the compression notebook varies, trained with its hyperparameters.

Source: Farrell et al. 2025, training notebook, section "experiment grid": every specification listed there,
including those commented out; specifications of the same architecture appear once.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pandas as pd

from rasplens.learned.architecture import Architecture
from rasplens.learned.recipes import get_recipe
from rasplens.learned.training.trainer import train
from rasplens.tasks import Task

STEPS = 20_000
"""Steps of each, as in the notebook."""


def _architecture(
    d_model: int, n_layers: int = 3, ln: bool = False, bias: bool = False, wo: bool = True
) -> Architecture:
    return Architecture(
        n_layers=n_layers,
        n_heads=1,
        d_model=d_model,
        d_head=d_model,
        identity_v=True,
        identity_o=wo,
        normalization="LN" if ln else "none",
        bias=bias,
    )


GRID: Mapping[str, Architecture] = {
    "d128": _architecture(128),
    "d128_2layer": _architecture(128, n_layers=2),
    "d128_2layer_ln_bias": _architecture(128, n_layers=2, ln=True, bias=True),
    "d64": _architecture(64),
    **{
        f"d{width}{name}": _architecture(width, **changes)
        for width in (32, 16, 8)
        for name, changes in (
            ("", {}),
            ("_ln_bias", {"ln": True, "bias": True}),
            ("_noLN", {"bias": True}),
            ("_noBias", {"ln": True}),
            ("_unfwo", {"wo": False}),
        )
    },
    "d4_ln_bias": _architecture(4, ln=True, bias=True),
}
"""The architectures by the notebook's names."""


def train_grid(
    task: Task,
    grid: Mapping[str, Architecture] = GRID,
    steps: int = STEPS,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> pd.DataFrame:
    """Trains every architecture of a grid.

    Args:
        task: What is learned.
        grid: The architectures by name.
        steps: The most steps of each.
        seed: Of each.
        progress: Called before each with its name, how many are done, and how many there are.

    Returns:
        One row per architecture: name, layers, d_model, layer_norm, bias, frozen, steps, token and sequence
        (held-out accuracies).
    """
    published = replace(get_recipe("compression_notebook", "published"), steps=steps)
    rows = []
    for done, (name, architecture) in enumerate(grid.items()):
        if progress is not None:
            progress(name, done, len(grid))
        model = train(task, replace(published, architecture=architecture), seed)
        rows.append({"name": name, **_described(architecture), **_result(model.provenance)})
    return pd.DataFrame(rows)


def _described(architecture: Architecture) -> dict[str, object]:
    frozen = [
        name for name, is_it in (("W_V", architecture.identity_v), ("W_O", architecture.identity_o)) if is_it
    ]
    return {
        "layers": architecture.n_layers,
        "d_model": architecture.d_model,
        "layer_norm": architecture.normalization != "none",
        "bias": architecture.bias,
        "frozen": " ".join(frozen),
    }


def _result(provenance: Mapping[str, object]) -> dict[str, object]:
    accuracy: Mapping[str, float] = provenance["accuracy"]  # type: ignore[assignment]
    return {"steps": provenance["steps"], "token": accuracy["token"], "sequence": accuracy["sequence"]}
