"""Compression: one linear map, trained so that the compiled model computes the same through fewer directions.

Lindner et al. 2023, "Tracr", section 5 and appendix E.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rasplens.compile.compiled import CompiledModel
from rasplens.compile.rasp import Encoding
from rasplens.errors import RaspLensError
from rasplens.learned.compressor.compressed_model import CompressedModel, compressed_by
from rasplens.learned.compressor.examples import Examples, examples
from rasplens.learned.compressor.recipe import (
    CROSS_ENTROPY,
    SQUARED_ERROR,
    CompressionRecipe,
    OutputLoss,
    get_recipe,
)
from rasplens.learned.compressor.report import Progress
from rasplens.learned.config import DEFAULTS, TrainConfig

NEARLY = 0.01
"""Of two results whose shares of right answers differ by at most this, the one with less loss is better."""

TRAINING_SEED = 1_000_003
"""The seed of training inputs; different from the seeds of inputs that models are evaluated on."""


def compress(
    compiled: CompiledModel,
    d: int,
    recipe: CompressionRecipe | str = "fast",
    seed: int = 0,
    *,
    config: TrainConfig = DEFAULTS,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> CompressedModel:
    """A compiled model with a residual stream of d directions, in which its features share directions.

    One map `W [D, d]` is trained and everything else stays: what the model writes goes through `W`, what it reads
    comes through `Wᵀ`, the embedding and the unembedding among them. The loss is that of the answers
    (cross-entropy, or the squared error of numbers) plus the squared error of what each layer writes.

    Args:
        compiled: The model.
        d: The width.
        recipe: How to train, or the name of a recipe: `"fast"`, or `"paper"` with its 300,000 steps.
        seed: Of the first maps and of the inputs.
        config: How to go about it.
        progress: Called after every chunk of steps.
        state_path: A `.safetensors` file to keep the state in, with its history beside it as `.jsonl`. If it is
            there already, the run goes on from it.

    Raises:
        RaspLensError: If the width is below 1 or above that of the compiled model, or the loss does not fit the
            encoding of the output.
        TrainingError: If the loss becomes infinite or NaN, at whatever rate it was tried.
        StorageError: If the state cannot be written, is damaged, or is that of another run.
    """
    members = (d,), (seed,)
    return compress_many(compiled, *members, recipe, config=config, progress=progress, state_path=state_path)[0]


def compress_many(
    compiled: CompiledModel,
    widths: Iterable[int],
    seeds: Iterable[int] = (0,),
    recipe: CompressionRecipe | str = "fast",
    *,
    config: TrainConfig = DEFAULTS,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> list[CompressedModel]:
    """A compressed model for each width and seed, in this order, trained in one program; see `compress`.

    Args:
        compiled: The model.
        widths: Different ones.
        seeds: Different ones.
        recipe: As for `compress`.
        config: As for `compress`.
        progress: Called for every model after every chunk of steps.
        state_path: As for `compress`, for all of them together.

    Raises:
        RaspLensError: As for `compress`; or if there is no width or no seed, or one twice.
        TrainingError: If the loss becomes infinite or NaN, at whatever rate it was tried.
        StorageError: If the state cannot be written, is damaged, or is that of another run.
    """
    from rasplens.learned.compressor.trainer import MapTraining
    from rasplens.learned.training import loop

    recipe = get_recipe(recipe) if isinstance(recipe, str) else recipe
    seeds = tuple(seeds)
    members = [(width, seed) for width in widths for seed in seeds]
    check_members(compiled, members)
    output_loss, pool = fitting_loss(compiled, recipe), training_pool(compiled, config)
    job = MapTraining(compiled, members, recipe, output_loss, pool, config.map_chunk)
    at = loop.run(job, progress, state_path, config.save_every)
    runs = [member for member in members for _ in recipe.heats]
    ends = [
        compressed_by(
            compiled,
            projection[:, :width].astype(np.float64),
            recipe=recipe,
            seed=seed,
            history=tuple((step, output, layers) for step, output, layers in history),
        )
        for (width, seed), projection, history in zip(
            runs, np.asarray(at.arrays.best), at.notes["histories"], strict=True
        )
    ]
    n, losses = len(recipe.heats), np.asarray(at.arrays.least).tolist()
    return [better_end(ends[i : i + n], losses[i : i + n]) for i in range(0, len(ends), n)]


def fitting_loss(compiled: CompiledModel, recipe: CompressionRecipe) -> OutputLoss:
    """The loss of the answers: the recipe's, or the one that fits the encoding of the output.

    Raises:
        RaspLensError: If they do not fit.
    """
    output = compiled.variables[compiled.output]
    if output.encoding is Encoding.CATEGORICAL:
        return recipe.output_loss or CROSS_ENTROPY
    if recipe.output_loss == CROSS_ENTROPY:
        raise RaspLensError(
            f"The output {compiled.output!r} is numerical: it has no classes for a cross-entropy. "
            f'Omit output_loss, or set it to "{SQUARED_ERROR}".'
        )
    return SQUARED_ERROR


def training_pool(compiled: CompiledModel, config: TrainConfig = DEFAULTS) -> Examples:
    """Return the pool from which the inputs of every step are drawn."""
    shape = compiled.transformer.config
    per_input = 2 * shape.n_layers * shape.n_ctx * shape.d_model
    n = max(1_000, min(config.pool, config.most_numbers // max(1, per_input)))
    return examples(compiled, n, TRAINING_SEED)


def better_end(ends: Sequence[CompressedModel], losses: Sequence[float]) -> CompressedModel:
    """Return the model of least loss, of those with (nearly) the most right answers."""
    if len(ends) == 1:
        return ends[0]
    from rasplens.learned.compressor.evaluation import evaluate

    right = [evaluate(model).token for model in ends]
    return min(
        (loss, i, end)
        for i, (end, loss) in enumerate(zip(ends, losses, strict=True))
        if right[i] >= max(right) - NEARLY
    )[2]


def check_members(compiled: Any, members: Sequence[tuple[Any, int]]) -> None:
    """Raises unless there is a compiled model, and widths that fit it.

    Raises:
        TypeError: If it is no compiled model.
        RaspLensError: If a width does not fit it, or there are no members, or one twice.
    """
    if not isinstance(compiled, CompiledModel):
        raise TypeError(f"compress takes a CompiledModel, as compile_program returns it; got {compiled!r}.")
    wide = compiled.transformer.config.d_model
    for width, _ in members:
        if isinstance(width, bool) or not isinstance(width, int | np.integer) or not 1 <= width <= wide:
            raise RaspLensError(
                f"d must be a whole number from 1 to {wide}, the width of the compiled model; got {width!r}."
            )
    if not members or len(set(members)) < len(members):
        raise RaspLensError(
            f"Compression needs at least one width and one seed, and each only once; got {members} (width, seed)."
        )
