"""Training on a task: one model, or several seeds in one program."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from rasplens.errors import RaspLensError
from rasplens.learned.config import DEFAULTS, TrainConfig
from rasplens.learned.errors import TrainingError
from rasplens.learned.initialisation import untrained
from rasplens.learned.learned_model import LearnedModel
from rasplens.learned.recipes import Recipe, get_recipe
from rasplens.learned.training import loop
from rasplens.learned.training.loop import ChunkedRun, RunState
from rasplens.learned.training.report import Progress, Report
from rasplens.learned.training.steps import TrainingSteps, build_steps, usable_devices
from rasplens.model import Transformer
from rasplens.model.random_streams import rng
from rasplens.tasks import TASKS, Task, as_task, get_task
from rasplens.tasks.completion import generated_accuracy, is_generated
from rasplens.tasks.task import accuracy_of, marked


def train(
    task: Task | str,
    recipe: Recipe | str = "fast",
    seed: int = 0,
    *,
    config: TrainConfig = DEFAULTS,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> LearnedModel:
    """A model trained on a task; the same seed gives the same model on the same machine.

    Held-out inputs are never trained on and decide nothing: early stopping looks at a fixed sample of the
    others.

    Args:
        task: The task or its name.
        recipe: The recipe, or its name among the task's `RECIPES`.
        seed: Of the initial weights and of the inputs.
        config: How to go about it.
        progress: Called after every chunk of steps.
        state_path: A `.safetensors` file to keep the state of the training in, with its history beside it as
            `.jsonl`. If it is there already, the training goes on from it, and ends with the very weights that
            it would have had without the interruption.

    Raises:
        RaspLensError: If there is no such task or recipe.
        TrainingError: If the loss becomes infinite or NaN.
        StorageError: If the state cannot be written, is damaged, or is that of another training.
    """
    return train_many(task, recipe, (seed,), config=config, progress=progress, state_path=state_path)[0]


def train_many(
    task: Task | str,
    recipe: Recipe | str,
    seeds: Iterable[int],
    *,
    config: TrainConfig = DEFAULTS,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> list[LearnedModel]:
    """A model for each seed, trained together in one program; each as if it were trained alone, to rounding.

    Args:
        task: The task or its name.
        recipe: The recipe, or its name among the task's `RECIPES`.
        seeds: Different ones.
        config: As for `train`.
        progress: Called for every model after every chunk of steps.
        state_path: As for `train`, for all of them together.

    Raises:
        RaspLensError: If there is no such task or recipe, no seed, or one twice.
        TrainingError: If the loss becomes infinite or NaN.
        StorageError: If the state cannot be written, is damaged, or is that of another training.
    """
    task = as_task(task)
    name, recipe = (recipe, get_recipe(task.name, recipe)) if isinstance(recipe, str) else (None, recipe)
    members = tuple(seeds)
    if not members or len(set(members)) < len(members):
        raise RaspLensError(f"Training needs at least one seed, and each seed only once; got {members}.")
    job = _Training(task, recipe, members, config)
    end = loop.run(job, progress, state_path, config.save_every)
    return [
        _learned(job, name, i, {key: np.asarray(array[i]) for key, array in end.arrays[0].items()}, end.reports)
        for i in range(len(members))
    ]


@dataclass(frozen=True, eq=False)
class _Training(ChunkedRun[Report]):
    """The training of some seeds.

    The standing's arrays are the trained weights and the optimiser's state, `[member, ...]`; its notes the state
    of each member's random generator.
    """

    task: Task
    recipe: Recipe
    seeds: tuple[int, ...]
    config: TrainConfig
    report = Report

    @cached_property
    def n_devices(self) -> int:
        return usable_devices(self.task, self.recipe, self.config)

    @cached_property
    def steps(self) -> TrainingSteps:
        return build_steps(self.task, self.recipe, self.n_devices)

    @cached_property
    def starts(self) -> list[Transformer]:
        return [untrained(self.recipe.architecture, self.task, seed) for seed in self.seeds]

    @property
    def identity(self) -> Mapping[str, Any]:
        return {
            "task": f"{self.task.name} ({self.task.digest})",
            "recipe": self.recipe.to_dict(),
            "seeds": list(self.seeds),
            "devices": self.n_devices,
            "chunk": self.config.chunk,
            "monitored inputs": self.config.n_monitored,
        }

    def layout(self) -> Any:
        return self.first().arrays

    def first(self) -> RunState[Report]:
        frozen = self.starts[0].config.frozen
        names = [name for name in self.starts[0].weights if name not in frozen]
        weights = {name: jnp.stack([start.weights[name] for start in self.starts]) for name in names}
        generators = [rng(seed, "training inputs").bit_generator.state for seed in self.seeds]
        return RunState((weights, self.steps.begin(weights)), {"generators": generators})

    def is_done(self, at: RunState[Report]) -> bool:
        return not self._active(at).any()

    def chunk(self, at: RunState[Report]) -> RunState[Report]:
        """The standing after a chunk of steps of every active member, with a report for each of them.

        Raises:
            TrainingError: If a loss is no finite number.
        """
        active, done = self._active(at), max((report.step for report in at.reports), default=0)
        done_then = done + min(self.config.chunk, self.recipe.steps - done)
        ids, targets, generators = self._drawn(at, active, done_then - done)
        arrays, losses = self.steps.run(at.arrays, active, ids, targets)
        mean_losses = np.asarray(losses).mean(axis=1)
        for i in np.flatnonzero(active & ~np.isfinite(mean_losses)):
            raise TrainingError(
                f"The loss became {mean_losses[i]} before step {done_then} (seed {self.seeds[i]}). Lower the "
                f"learning rate ({self.recipe.learning_rate:g}) or clip the gradients."
            )
        looked_at = self._looked_at(arrays[0])
        new = [
            Report(
                seed=self.seeds[i],
                step=done_then,
                loss=float(mean_losses[i]),
                training_token=accuracy_of(looked_at[0][i]).token,
                **accuracy_of(looked_at[1][i])._asdict(),
            )
            for i in np.flatnonzero(active)
        ]
        return RunState(arrays, {"generators": generators}, (*at.reports, *new))

    def _active(self, at: RunState[Report]) -> np.ndarray:
        """Which members are still training: `[member]`."""
        last = {report.seed: report for report in at.reports}
        recipe = self.recipe
        return np.array(
            [
                seed not in last or (last[seed].step < recipe.steps and last[seed].training_token < recipe.stop_at)
                for seed in self.seeds
            ]
        )

    def _drawn(
        self, at: RunState[Report], active: np.ndarray, size: int
    ) -> tuple[np.ndarray, np.ndarray, list[Mapping[str, Any]]]:
        """Inputs and targets of a chunk, `[member, step, batch, ...]`, and the generators' states after it."""
        objective = self.recipe.objective(self.task)
        ids = np.zeros((len(self.seeds), size, self.recipe.batch_size, self.task.n_ctx), dtype=np.int32)
        targets = np.zeros((*ids.shape[:3], len(objective.loss_positions)), dtype=np.int32)
        generators = list(at.notes["generators"])
        for i in np.flatnonzero(active):
            generator = np.random.default_rng()
            generator.bit_generator.state = generators[i]
            drawn = self.task.sample(generator, size * self.recipe.batch_size)
            ids[i], targets[i] = drawn.reshape(ids.shape[1:]), objective.target(drawn).reshape(targets.shape[1:])
            generators[i] = generator.bit_generator.state
        return ids, targets, generators

    def _looked_at(self, weights: Any) -> list[list[np.ma.MaskedArray]]:
        """Of each member, which answers to monitored and to held-out inputs are right: `[input, loss_pos]`."""
        monitored = self.task.sample(np.random.default_rng(0), self.config.n_monitored)
        inputs = np.concatenate([monitored, self.task.held_out])
        answers, targets = np.asarray(self.steps.answers(weights, inputs)), self.task.target(inputs)
        n = self.config.n_monitored
        return [[marked(own[part], targets[part]) for own in answers] for part in (slice(n), slice(n, None))]


def _learned(
    job: _Training, name: str | None, member: int, trained: dict[str, np.ndarray], reports: tuple[Report, ...]
) -> LearnedModel:
    """A member at the end of its training, with where it comes from."""
    task, seed, start = job.task, job.seeds[member], job.starts[member]
    transformer = Transformer(start.config, {**start.weights, **trained}, start.mask)
    history = [asdict(report) for report in reports if report.seed == seed]
    generated = {}
    if is_generated(task):
        own = generated_accuracy(task, lambda ids: task.answers(transformer, ids))
        generated = {"generated": own._asdict()}
    provenance: dict[str, Any] = {
        "origin": f"trained by {_how(name)} with seed {seed}",
        "recipe": job.recipe.to_dict(),
        "recipe_name": name,
        "seed": seed,
        "task_digest": task.digest,
        "steps": history[-1]["step"],
        "accuracy": task.accuracy(transformer)._asdict(),
        **generated,
        "history": history,
    }
    if name is not None and task.name in TASKS and np.array_equal(get_task(task.name).held_out, task.held_out):
        provenance["command"] = f"rasplens train {task.name} --recipe {name} --seed {seed}"
    return LearnedModel(transformer, task.name, provenance)


def _how(recipe_name: str | None) -> str:
    return "a recipe of its own" if recipe_name is None else f"recipe {recipe_name!r}"
