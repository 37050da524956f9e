"""The training of a compression's maps, chunk by chunk: from the best of several starts, or where it was left."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rasplens.compile.compiled import CompiledModel
from rasplens.learned.compressor.examples import Examples
from rasplens.learned.compressor.projection import fitted_map, reading_errors
from rasplens.learned.compressor.recipe import CompressionRecipe
from rasplens.learned.compressor.report import CompressionReport, Progress
from rasplens.learned.compressor.training import State, Training, build_training, first_maps
from rasplens.learned.errors import TrainingError
from rasplens.learned.training.run_files import load_run, save_run

CHUNK = 500
"""Steps between two reports."""

SAVE_EVERY = 5.0
"""Seconds between two states on disk."""


@dataclass(frozen=True)
class _Standing:
    """How far a run is.

    Attributes:
        state: Of every heat of every member.
        step: Steps done.
        seconds: Since the start, interruptions not included.
        histories: Of every heat of every member, (step, loss of the answers, loss of the layers) where finite.
    """

    state: State
    step: int
    seconds: float
    histories: list[list[tuple[int, float, float]]]


def train_maps(
    compiled: CompiledModel,
    members: Sequence[tuple[int, int]],
    recipe: CompressionRecipe,
    output_loss: str,
    pool: Examples,
    progress: Progress | None,
    path: Path | None,
) -> tuple[np.ndarray, list[float], list[list[tuple[int, float, float]]]]:
    """Trains maps, or goes on with it.

    Args:
        compiled: The model.
        members: Widths and seeds.
        recipe: How to train.
        output_loss: `"cross_entropy"` or `"squared_error"`.
        pool: The inputs to draw from.
        progress: Called for every member after every chunk, with its heat that leads.
        path: Where to keep the state; None keeps none.

    Returns:
        For every heat of every member the best map, `[member and heat, D, d]`, the mean loss there, and the
        history of the losses, as far as they are finite.

    Raises:
        TrainingError: If every heat of a member diverges.
        StorageError: If the state cannot be written, is damaged, or is that of another run.
    """
    training = build_training(compiled, pool, recipe, output_loss)
    seeds = jnp.repeat(jnp.array([own for _, own in members]), len(recipe.heats))
    run = {
        "program": compiled.output,
        "weights": _digest(compiled),
        "recipe": asdict(recipe),
        "members": [list(member) for member in members],
    }
    began = time.perf_counter()
    if path is not None and path.exists():
        blank = jnp.zeros((len(seeds), compiled.transformer.config.d_model, max(d for d, _ in members)))
        at = _restored(path, jax.eval_shape(training.begin, blank, jnp.ones(len(seeds))), run)
    else:
        state = _begun(training, compiled, pool, members, recipe)
        step = recipe.trial if recipe.starts > len(recipe.heats) else 0
        at = _Standing(state, step, 0.0, [[] for _ in seeds])
    began, saved_at = began - at.seconds, time.perf_counter()
    while at.step < recipe.steps:
        size = min(CHUNK, recipe.steps - at.step)
        state, output, layers = training.run(at.state, at.step, seeds, size)
        losses = np.stack([np.asarray(output).mean(axis=1), np.asarray(layers).mean(axis=1)], axis=1)
        histories = [
            _longer(history, at.step + size, *own)
            for history, own in zip(at.histories, losses.tolist(), strict=True)
        ]
        at = _Standing(state, at.step + size, time.perf_counter() - began, histories)
        _tell(at, losses[_leads(state, len(recipe.heats))], members, recipe, progress)
        if path is not None and (time.perf_counter() - saved_at > SAVE_EVERY or at.step == recipe.steps):
            save_run(path, state, run, {"histories": at.histories, "seconds": at.seconds, "step": at.step})
            saved_at = time.perf_counter()
    return np.asarray(at.state.best), np.asarray(at.state.least).tolist(), at.histories


def _restored(path: Path, first: State, run: Mapping[str, Any]) -> _Standing:
    """Where a run was left."""
    state, found = load_run(path, first, run)
    histories = [[tuple(entry) for entry in history] for history in found["histories"]]
    return _Standing(state, found["step"], found["seconds"], histories)


def _longer(
    history: list[tuple[int, float, float]], step: int, output: float, layers: float
) -> list[tuple[int, float, float]]:
    """A history with another entry, if that is finite."""
    return [*history, (step, output, layers)] if np.isfinite([output, layers]).all() else history


def _tell(
    at: _Standing,
    losses: Float[np.ndarray, "member 2"],
    members: Sequence[tuple[int, int]],
    recipe: CompressionRecipe,
    progress: Progress | None,
) -> None:
    """Reports how every member stands, or that it has diverged."""
    for (width, own), (output, layers) in zip(members, losses.tolist(), strict=True):
        if not np.isfinite([output, layers]).all():
            raise TrainingError(
                f"The compression to d={width} diverged before step {at.step} (seed {own}). Lower the learning "
                f"rate ({recipe.learning_rate:g})."
            )
        if progress is not None:
            progress(CompressionReport(width, own, at.step, recipe.steps, output, layers, at.seconds))


def _leads(state: State, heats: int) -> np.ndarray:
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
    training: Training,
    compiled: CompiledModel,
    pool: Examples,
    members: Sequence[tuple[int, int]],
    recipe: CompressionRecipe,
) -> State:
    """Every member's state after the trial: of each heat, from the start that came furthest.

    Some starts get stuck; and which learning rate goes further in the end cannot be told early.
    """
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
