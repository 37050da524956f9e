"""Training: one model or an ensemble of seeds, that can be killed at any moment and goes on where it was."""

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, overload

import jax.numpy as jnp
import numpy as np

from rasplens.learned.errors import TrainingError
from rasplens.learned.initialisation import untrained
from rasplens.learned.learned_model import LearnedModel
from rasplens.learned.recipes import Recipe, get_recipe
from rasplens.learned.training.state import Report, TrainingState, append_history, load_state, save_state
from rasplens.learned.training.steps import Steps, build_steps, usable_devices
from rasplens.model import Transformer
from rasplens.model.random_streams import rng
from rasplens.tasks import TASKS, Task, get_task

CHUNK = 100
"""Steps between two looks at the accuracy."""

N_MONITORED = 1_000
"""Inputs of the fixed sample that early stopping looks at; none of them is held out."""

SAVE_EVERY = 5.0
"""Seconds between two states on disk."""


Progress = Callable[[Report], None]


@overload
def train(
    task: Task | str,
    recipe: Recipe | str = "fast",
    seed: int = 0,
    *,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> LearnedModel: ...


@overload
def train(
    task: Task | str,
    recipe: Recipe | str = "fast",
    *,
    seeds: Iterable[int],
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> list[LearnedModel]: ...


def train(
    task: Task | str,
    recipe: Recipe | str = "fast",
    seed: int = 0,
    *,
    seeds: Iterable[int] | None = None,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> LearnedModel | list[LearnedModel]:
    """A model trained on a task; the same seed gives the same model on the same machine.

    Held-out inputs are never trained on and decide nothing: early stopping looks at a fixed sample of the
    others.

    Args:
        task: The task or its name.
        recipe: The recipe, or its name among the task's `RECIPES`.
        seed: Of the initial weights and of the inputs.
        seeds: Several seeds instead: one model for each, trained together in one program. Each comes out as
            if it were trained alone, to rounding.
        progress: Called for every model after every chunk of steps.
        state_path: A `.safetensors` file to keep the state of the training in, with its history beside it as
            `.jsonl`. If it is there already, the training goes on from it, and ends with the very weights that
            it would have had without the interruption.

    Raises:
        ValueError: If there is no such task or recipe, or no seed.
        TrainingError: If the loss becomes infinite or NaN.
        StorageError: If the state cannot be written, is damaged, or is that of another training.
    """
    task = get_task(task) if isinstance(task, str) else task
    name, recipe = (recipe, get_recipe(task.name, recipe)) if isinstance(recipe, str) else (None, recipe)
    members = (seed,) if seeds is None else tuple(seeds)
    if not members or len(set(members)) < len(members):
        raise ValueError(f"Training needs one seed or several different ones; got {members}.")
    starts = [untrained(recipe.architecture, task, member) for member in members]
    end = _train(task, recipe, starts, members, progress, None if state_path is None else Path(state_path))
    models = [
        _learned(
            task, recipe, name, start, {key: np.asarray(array[i]) for key, array in end.arrays[0].items()}, history
        )
        for i, (start, history) in enumerate(zip(starts, end.histories, strict=True))
    ]
    return models[0] if seeds is None else models


def _train(
    task: Task,
    recipe: Recipe,
    starts: Sequence[Transformer],
    seeds: tuple[int, ...],
    progress: Progress | None,
    path: Path | None,
) -> TrainingState:
    """The state at the end, of a training that goes on from the state at `path` if there is one."""
    n_devices = usable_devices(task, recipe)
    steps, run = (
        build_steps(task, recipe, n_devices),
        _told_by(task, recipe, seeds, n_devices),
    )
    state = _first_state(steps, starts, seeds)
    if path is not None:
        state = load_state(path, state, run)
        append_history(path, state.reports(), anew=True)
    saved_at = time.perf_counter()
    while _active(state, recipe).any():
        state = _chunk(task, recipe, steps, state, seeds)
        reports = [report for report in state.reports() if report.seconds == state.seconds]
        if progress is not None:
            for report in reports:
                progress(report)
        if path is not None:
            append_history(path, reports)
            if time.perf_counter() - saved_at > SAVE_EVERY or not _active(state, recipe).any():
                save_state(state, path, run)
                saved_at = time.perf_counter()
    return state


def _first_state(steps: Steps, starts: Sequence[Transformer], seeds: tuple[int, ...]) -> TrainingState:
    frozen = starts[0].config.frozen
    names = [name for name in starts[0].weights if name not in frozen]
    weights = {name: jnp.stack([start.weights[name] for start in starts]) for name in names}
    generators = tuple(rng(seed, "training inputs").bit_generator.state for seed in seeds)
    return TrainingState((weights, steps.begin(weights)), generators, tuple(() for _ in seeds), 0.0)


def _active(state: TrainingState, recipe: Recipe) -> np.ndarray:
    """Which members are still training: `[member]`."""
    return np.array(
        [
            not history or (history[-1].step < recipe.steps and history[-1].training_token < recipe.stop_at)
            for history in state.histories
        ]
    )


def _chunk(
    task: Task, recipe: Recipe, steps: Steps, state: TrainingState, seeds: tuple[int, ...]
) -> TrainingState:
    """The state after a chunk of steps of every active member.

    Raises:
        TrainingError: If a loss is no finite number.
    """
    began = time.perf_counter()
    active = _active(state, recipe)
    done = max(history[-1].step if history else 0 for history in state.histories)
    objective = recipe.objective(task)
    size = min(CHUNK, recipe.steps - done)
    ids = np.zeros((len(seeds), size, recipe.batch_size, task.n_ctx), dtype=np.int32)
    targets = np.zeros((*ids.shape[:3], len(objective.loss_positions)), dtype=np.int32)
    generators = list(state.generators)
    for i in np.flatnonzero(active):
        generator = np.random.default_rng()
        generator.bit_generator.state = generators[i]
        drawn = task.sample(generator, size * recipe.batch_size)
        ids[i], targets[i] = drawn.reshape(ids.shape[1:]), objective.target(drawn).reshape(targets.shape[1:])
        generators[i] = generator.bit_generator.state
    arrays, losses = steps.run(state.arrays, active, ids, targets)
    mean_losses = np.asarray(losses).mean(axis=1)
    for i in np.flatnonzero(active & ~np.isfinite(mean_losses)):
        raise TrainingError(
            f"The loss became {mean_losses[i]} before step {done + size} (seed {seeds[i]}). Lower the learning "
            f"rate ({recipe.learning_rate:g}) or clip the gradients."
        )
    monitored = task.sample(np.random.default_rng(0), N_MONITORED)
    looked_at = np.concatenate([monitored, task.held_out])
    right = np.asarray(steps.right(arrays[0], looked_at, task.target(looked_at)))
    on_monitored, on_held_out = np.split(right, [N_MONITORED], axis=1)
    seconds = state.seconds + time.perf_counter() - began
    histories = list(state.histories)
    for i in np.flatnonzero(active):
        histories[i] += (
            Report(
                seed=seeds[i],
                step=done + size,
                loss=float(mean_losses[i]),
                training_token=float(on_monitored[i].mean()),
                token=float(on_held_out[i].mean()),
                sequence=float(on_held_out[i].all(axis=1).mean()),
                seconds=seconds,
            ),
        )
    return TrainingState(arrays, tuple(generators), tuple(histories), seconds)


def _told_by(task: Task, recipe: Recipe, seeds: tuple[int, ...], n_devices: int) -> dict[str, Any]:
    """What tells one training from another, in JSON values."""
    digest = hashlib.sha256(np.ascontiguousarray(task.held_out).tobytes()).hexdigest()[:12]
    return {
        "task": f"{task.name} (held-out inputs {digest})",
        "recipe": recipe.to_dict(),
        "seeds": list(seeds),
        "devices": n_devices,
    }


def _learned(
    task: Task,
    recipe: Recipe,
    name: str | None,
    start: Transformer,
    trained: dict[str, np.ndarray],
    history: tuple[Report, ...],
) -> LearnedModel:
    """A member at the end of its training, with where it comes from."""
    weights = {**start.weights, **trained}
    transformer = Transformer(start.config, weights, start.mask)
    last, accuracy = history[-1], task.accuracy(transformer)
    provenance: dict[str, Any] = {
        "origin": f"trained by {_how(name)} with seed {last.seed}",
        "recipe": recipe.to_dict(),
        "recipe_name": name,
        "seed": last.seed,
        "steps": last.step,
        "accuracy": accuracy._asdict(),
        "history": [asdict(report) for report in history],
    }
    if name is not None and task.name in TASKS and np.array_equal(get_task(task.name).held_out, task.held_out):
        provenance["command"] = f"rasplens train {task.name} --recipe {name} --seed {last.seed}"
    return LearnedModel(transformer, task.name, provenance)


def _how(recipe_name: str | None) -> str:
    return "a recipe of its own" if recipe_name is None else f"recipe {recipe_name!r}"
