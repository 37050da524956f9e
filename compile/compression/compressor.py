"""Compression: one linear map, trained so that the compiled model computes the same through fewer directions.

Lindner et al. 2023, "Tracr", section 5 and appendix E.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from rasplens.compile.compiled import CompiledModel
from rasplens.compile.compression.compressed import CompressedModel, compressed_by
from rasplens.compile.compression.evaluation import evaluate
from rasplens.compile.compression.examples import Examples, examples
from rasplens.compile.compression.projection import fitted_map, reading_errors
from rasplens.compile.compression.recipe import (
    CROSS_ENTROPY,
    SQUARED_ERROR,
    CompressionRecipe,
    get_recipe,
)
from rasplens.compile.errors import CompressionError
from rasplens.compile.rasp import Encoding

if TYPE_CHECKING:
    from rasplens.compile.compression.training import State, Training

CHUNK = 500
"""Steps between two reports."""

MOST_NUMBERS = 50_000_000
"""The layers' outputs on all inputs of the pool may take as many numbers: 200 MB."""

POOL = 20_000
"""Inputs to draw from, where there are too many to list."""

SAVE_EVERY = 5.0
"""Seconds between two states on disk."""

TRAINING_SEED = 1_000_003
"""Keeps the inputs of the training apart from those that a model is judged on."""


@dataclass(frozen=True)
class CompressionReport:
    """How a compression stands after a chunk of steps.

    Attributes:
        d: The width.
        seed: The seed.
        step: Steps done.
        of: Steps in all.
        output_loss: The loss of the answers over the chunk.
        layer_loss: The squared error of the layers' outputs, added up.
        seconds: Since the start, interruptions not included.
    """

    d: int
    seed: int
    step: int
    of: int
    output_loss: float
    layer_loss: float
    seconds: float


Progress = Callable[[CompressionReport], None]


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
        seed: Of the first map and of the inputs.
        seeds: With several widths, several seeds for each of them.
        progress: Called for every model after every chunk of steps.
        state_path: A `.safetensors` file to keep the state in. If it is there already, the run goes on from it.

    Returns:
        The model; for several widths a list, in the order of widths and then seeds.

    Raises:
        ValueError: If a width is below 1 or above the width of the compiled model, or the loss does not fit the
            encoding of the output.
        CompressionError: If the loss becomes infinite or NaN.
        StorageError: If the state cannot be written, is damaged, or is that of another run.
    """
    if not isinstance(compiled, CompiledModel):
        raise TypeError(f"compress takes a CompiledModel, as compile_program returns it; got {compiled!r}.")
    recipe = get_recipe(recipe) if isinstance(recipe, str) else recipe
    widths = tuple(d) if isinstance(d, Iterable) else (d,)
    members = [(width, own) for width in widths for own in ((seed,) if seeds is None else tuple(seeds))]
    _check_members(compiled, members)
    output_loss, pool = fitting_loss(compiled, recipe), training_pool(compiled)
    maps, histories = _train(
        compiled, members, recipe, output_loss, pool, progress, None if state_path is None else Path(state_path)
    )
    ends = [
        compressed_by(
            compiled, projection[:, :width].astype(np.float64), recipe=recipe, seed=own, history=tuple(history)
        )
        for (width, own), projection, history in zip(
            [member for member in members for _ in recipe.heats], maps, histories, strict=True
        )
    ]
    n = len(recipe.heats)
    models = [_better(ends[i : i + n], pool) for i in range(0, len(ends), n)]
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


def _better(ends: Sequence[CompressedModel], pool: Examples) -> CompressedModel:
    """Of what a member's heats ended with, that with a hundredth more right answers, else that with less loss."""
    if len(ends) == 1:
        return ends[0]
    found = [evaluate(model, pool) for model in ends]
    weights = [model.recipe.layer_weight if model.recipe else 1.0 for model in ends]
    ranks = [
        (-round(one.token, 2), one.output_loss + weight * one.loss)
        for one, weight in zip(found, weights, strict=True)
    ]
    return ends[ranks.index(min(ranks))]


def _check_members(compiled: CompiledModel, members: Sequence[tuple[int, int]]) -> None:
    wide = compiled.transformer.config.d_model
    for width, _ in members:
        if isinstance(width, bool) or not isinstance(width, int | np.integer) or not 1 <= width <= wide:
            raise ValueError(
                f"d must be a whole number from 1 to {wide}, the width of the compiled model; got {width!r}."
            )
    if not members or len(set(members)) < len(members):
        raise ValueError("Compression needs at least one width and one seed, each of them once.")


def _train(
    compiled: CompiledModel,
    members: Sequence[tuple[int, int]],
    recipe: CompressionRecipe,
    output_loss: str,
    pool: Examples,
    progress: Progress | None,
    path: Path | None,
) -> tuple[np.ndarray, list[list[tuple[int, float, float]]]]:
    """The maps at the end, `[member and heat, D, d]`, and the history of each."""
    import jax
    import jax.numpy as jnp

    from rasplens.compile.compression.training import build_training
    from rasplens.model.run_state import load_run, save_run

    training = build_training(compiled, pool, recipe, output_loss)
    heats = len(recipe.heats)
    seeds = jnp.repeat(jnp.array([own for _, own in members]), heats)
    run = {
        "program": compiled.output,
        "weights": _digest(compiled),
        "recipe": asdict(recipe),
        "members": [list(member) for member in members],
    }
    histories: list[list[tuple[int, float, float]]] = [[] for _ in seeds]
    seconds, done, began = 0.0, 0, time.perf_counter()
    if path is not None and path.exists():
        blank = jnp.zeros((len(seeds), compiled.transformer.config.d_model, max(d for d, _ in members)))
        state, found = load_run(path, training.begin(blank, jnp.ones(len(seeds))), run)
        histories = [[tuple(entry) for entry in history] for history in found["histories"]]
        seconds, done = found["seconds"], found["step"]
    else:
        state = _begun(training, compiled, pool, members, recipe)
        done = recipe.trial if recipe.starts > heats else 0
    saved_at = time.perf_counter()
    while done < recipe.steps:
        size = min(CHUNK, recipe.steps - done)
        state, output, layers = training.run(state, done, seeds, size)
        losses = np.stack([np.asarray(output).mean(axis=1), np.asarray(layers).mean(axis=1)], axis=1).tolist()
        done += size
        seconds, began = seconds + time.perf_counter() - began, time.perf_counter()
        for history, (of_output, of_layers) in zip(histories, losses, strict=True):
            history.append((done, of_output, of_layers))
        for (width, own), lead in zip(members, _leads(state, heats).tolist(), strict=True):
            if not np.isfinite(losses[lead]).all():
                raise CompressionError(
                    f"The compression to d={width} diverged before step {done} (seed {own}). Lower the learning "
                    f"rate ({recipe.learning_rate:g})."
                )
            if progress is not None:
                progress(CompressionReport(width, own, done, recipe.steps, *losses[lead], seconds))
        if path is not None and (time.perf_counter() - saved_at > SAVE_EVERY or done == recipe.steps):
            save_run(path, state, run, {"histories": histories, "seconds": seconds, "step": done})
            saved_at = time.perf_counter()
    return np.asarray(jax.device_get(state.best)), histories


def _leads(state: "State", heats: int) -> np.ndarray:
    """For each member, which of its heats has had the least loss, of those that have not diverged."""
    least = np.where(np.isfinite(state.loss), state.least, np.inf).reshape(-1, heats)
    return least.argmin(axis=1) + heats * np.arange(len(least))


def _digest(compiled: CompiledModel) -> str:
    """What tells the weights of a model from others."""
    digest = hashlib.sha256()
    for name, array in sorted(compiled.transformer.weights.items()):
        digest.update(f"{name} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]


def _begun(
    training: "Training",
    compiled: CompiledModel,
    pool: Examples,
    members: Sequence[tuple[int, int]],
    recipe: CompressionRecipe,
) -> "State":
    """Every member's state after the trial: of each heat, from the start that came furthest.

    Some starts get stuck; and which learning rate goes further in the end cannot be told early.
    """
    import jax
    import jax.numpy as jnp

    from rasplens.compile.compression.training import first_maps

    every = [(width, own, start) for width, own in members for start in range(recipe.starts)]
    maps = first_maps(compiled.transformer.config.d_model, every)
    if recipe.fitted:
        parts = reading_errors(compiled, pool)
        for projection, (width, _, start) in zip(maps, every, strict=True):
            if start >= recipe.starts - recipe.fitted:
                projection[:, :width] = fitted_map(parts, projection[:, :width])
    rates = jnp.array([recipe.rate(start) for *_, start in every], jnp.float32)
    state = training.begin(jnp.asarray(maps), rates)
    if recipe.starts == len(recipe.heats):
        return state
    seeds = jnp.array([own for _, own, _ in every])
    state, *_ = training.run(state, 0, seeds, recipe.trial)
    losses = np.where(np.isfinite(state.loss), state.least, np.inf).reshape(len(members), recipe.starts)
    best = np.stack([np.array(heat)[losses[:, heat].argmin(axis=1)] for heat in recipe.heats], axis=1)
    chosen = (best + recipe.starts * np.arange(len(members))[:, None]).ravel()
    return jax.tree.map(lambda array: array[chosen], state)
