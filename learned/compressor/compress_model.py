"""Compression: one linear map, trained so that the compiled model computes the same through fewer directions.

Lindner et al. 2023, "Tracr", section 5 and appendix E.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from rasplens.compile.compiled import CompiledModel
from rasplens.compile.rasp import Encoding
from rasplens.learned.compressor.compressed_model import CompressedModel, compressed_by
from rasplens.learned.compressor.examples import Examples, examples
from rasplens.learned.compressor.recipe import (
    CROSS_ENTROPY,
    SQUARED_ERROR,
    CompressionRecipe,
    get_recipe,
)
from rasplens.learned.compressor.report import Progress

MOST_NUMBERS = 50_000_000
"""The layers' outputs on all inputs of the pool may take as many numbers: 200 MB."""

POOL = 20_000
"""Inputs to draw from, where there are too many to list."""

NEARLY = 0.01
"""Of two ends whose shares of right answers differ by no more, that with less loss is the better one."""

TRAINING_SEED = 1_000_003
"""Keeps the inputs of the training apart from those that a model is judged on."""


@overload
def compress(
    compiled: CompiledModel,
    d: int,
    recipe: CompressionRecipe | str = "fast",
    seed: int = 0,
    *,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> CompressedModel: ...


@overload
def compress(
    compiled: CompiledModel,
    d: Sequence[int],
    recipe: CompressionRecipe | str = "fast",
    seed: int = 0,
    *,
    seeds: Iterable[int] | None = None,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> list[CompressedModel]: ...


def compress(
    compiled: CompiledModel,
    d: int | Sequence[int],
    recipe: CompressionRecipe | str = "fast",
    seed: int = 0,
    *,
    seeds: Iterable[int] | None = None,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> CompressedModel | list[CompressedModel]:
    """A compiled model with a residual stream of d directions, in which its features share directions.

    One map `W [D, d]` is trained and everything else stays: what the model writes goes through `W`, what it reads
    comes through `Wᵀ`, the embedding and the unembedding among them. The loss is that of the answers
    (cross-entropy, or the squared error of numbers) plus the squared error of what each layer writes.

    Args:
        compiled: The model.
        d: The width, or several of them: these are trained in one program.
        recipe: How to train, or the name of a recipe: `"fast"`, or `"paper"` with its 300,000 steps.
        seed: Of the first maps and of the inputs.
        seeds: With several widths, several seeds for each of them.
        progress: Called for every model after every chunk of steps.
        state_path: A `.safetensors` file to keep the state in. If it is there already, the run goes on from it.

    Returns:
        The model; for several widths a list, in the order of widths and then seeds.

    Raises:
        ValueError: If a width is below 1 or above the width of the compiled model, or the loss does not fit the
            encoding of the output.
        TrainingError: If the loss becomes infinite or NaN, at whatever rate it was tried.
        StorageError: If the state cannot be written, is damaged, or is that of another run.
    """
    from rasplens.learned.compressor.loop import train_maps

    if not isinstance(compiled, CompiledModel):
        raise TypeError(f"compress takes a CompiledModel, as compile_program returns it; got {compiled!r}.")
    recipe = get_recipe(recipe) if isinstance(recipe, str) else recipe
    widths = tuple(d) if isinstance(d, Iterable) else (d,)
    members = [(width, own) for width in widths for own in ((seed,) if seeds is None else tuple(seeds))]
    _check_members(compiled, members)
    output_loss, pool = fitting_loss(compiled, recipe), training_pool(compiled)
    maps, losses, histories = train_maps(
        compiled, members, recipe, output_loss, pool, progress, None if state_path is None else Path(state_path)
    )
    runs = [member for member in members for _ in recipe.heats]
    ends = [
        compressed_by(
            compiled, projection[:, :width].astype(np.float64), recipe=recipe, seed=own, history=tuple(history)
        )
        for (width, own), projection, history in zip(runs, maps, histories, strict=True)
    ]
    n = len(recipe.heats)
    models = [_better(ends[i : i + n], losses[i : i + n]) for i in range(0, len(ends), n)]
    return models if isinstance(d, Iterable) or seeds is not None else models[0]


def fitting_loss(compiled: CompiledModel, recipe: CompressionRecipe) -> str:
    """The loss of the answers: the recipe's, or the one that fits the encoding of the output.

    Raises:
        ValueError: If they do not fit.
    """
    output = compiled.variables[compiled.output]
    if output.encoding is Encoding.CATEGORICAL:
        return recipe.output_loss or CROSS_ENTROPY
    if recipe.output_loss == CROSS_ENTROPY:
        raise ValueError(
            f"{compiled.output!r} is a number: it has no classes for a cross-entropy. Leave output_loss out, or "
            f'make it "{SQUARED_ERROR}".'
        )
    return SQUARED_ERROR


def training_pool(compiled: CompiledModel) -> Examples:
    """The inputs from which those of every step are drawn."""
    config = compiled.transformer.config
    per_input = 2 * config.n_layers * config.n_ctx * config.d_model
    return examples(compiled, max(1_000, min(POOL, MOST_NUMBERS // max(1, per_input))), TRAINING_SEED)


def _better(ends: Sequence[CompressedModel], losses: Sequence[float]) -> CompressedModel:
    """What a member's heats ended with: of the models with (nearly) the most right answers that of least loss."""
    if len(ends) == 1:
        return ends[0]
    from rasplens.learned.compressor.evaluation import evaluate

    right = [evaluate(model).token for model in ends]
    return min(
        (loss, i, end)
        for i, (end, loss) in enumerate(zip(ends, losses, strict=True))
        if right[i] >= max(right) - NEARLY
    )[2]


def _check_members(compiled: CompiledModel, members: Sequence[tuple[int, int]]) -> None:
    wide = compiled.transformer.config.d_model
    for width, _ in members:
        if isinstance(width, bool) or not isinstance(width, int | np.integer) or not 1 <= width <= wide:
            raise ValueError(
                f"d must be a whole number from 1 to {wide}, the width of the compiled model; got {width!r}."
            )
    if not members or len(set(members)) < len(members):
        raise ValueError("Compression needs at least one width and one seed, each of them once.")
