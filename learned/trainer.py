"""Training in JAX: whole chunks of steps run as one compiled program."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rasplens.learned.initialise import untrained
from rasplens.learned.learned import LearnedModel
from rasplens.learned.recipes import Recipe, get_recipe
from rasplens.model import Transformer
from rasplens.model.jax_forward import JaxWeights, jax_forward
from rasplens.tasks import Task, get_task

CHUNK = 100
"""Steps between two looks at the held-out inputs."""


class TrainingError(ValueError):
    """A recipe whose training cannot go on."""


@dataclass(frozen=True)
class Report:
    """How training stands after a chunk of steps.

    Attributes:
        step: Steps done.
        loss: Mean cross-entropy over the chunk, in nats per predicted token.
        token: Held-out token accuracy, in [0, 1].
        sequence: Held-out whole-sequence accuracy, in [0, 1].
        seconds: Since the start, compilation included.
    """

    step: int
    loss: float
    token: float
    sequence: float
    seconds: float


Progress = Callable[[Report], None]


def train(
    task: Task | str, recipe: Recipe | str = "fast", seed: int = 0, progress: Progress | None = None
) -> LearnedModel:
    """A model trained on a task; the same seed gives the same model on the same machine.

    Args:
        task: The task or its name.
        recipe: The recipe, or its name among the task's `RECIPES`.
        seed: Of the initial weights and of the inputs.
        progress: Called after every chunk of steps.

    Raises:
        ValueError: If there is no such task or recipe.
        TrainingError: If the loss becomes infinite or NaN.
    """
    task = get_task(task) if isinstance(task, str) else task
    name, recipe = (recipe, get_recipe(task.name, recipe)) if isinstance(recipe, str) else ("own", recipe)
    history, transformer = [], untrained(recipe.architecture, task, seed)
    for report, trained in _chunks(task, recipe, transformer, seed):
        transformer = trained
        history.append(report)
        if progress is not None:
            progress(report)
        if report.token >= recipe.stop_at:
            break
    last = history[-1]
    return LearnedModel(
        transformer,
        task.name,
        {
            "origin": f"trained by recipe {name!r} with seed {seed}",
            "command": f"rasplens train {task.name} --recipe {name} --seed {seed}",
            "recipe": recipe.to_dict(),
            "recipe_name": name,
            "seed": seed,
            "steps": last.step,
            "accuracy": {"token": last.token, "sequence": last.sequence},
            "history": [asdict(report) for report in history],
        },
    )


def _chunks(task: Task, recipe: Recipe, start: Transformer, seed: int) -> Iterator[tuple[Report, Transformer]]:
    """Trains chunk by chunk; yields where training stands and the model as it is then."""
    optimiser = _optimiser(recipe)
    trained, frozen = _split(start)
    state = trained, optimiser.init(trained)
    run_chunk = _chunk_function(task, start, frozen, optimiser)
    rng = np.random.default_rng([seed, 1])
    began, step = time.perf_counter(), 0
    while step < recipe.steps:
        size = min(CHUNK, recipe.steps - step)
        ids = task.sample(rng, size * recipe.batch_size)
        targets = task.target(ids)
        batches = [array.reshape(size, recipe.batch_size, -1) for array in (ids, targets)]
        state, losses = run_chunk(state, *batches)
        step += size
        loss = float(losses.mean())
        if not np.isfinite(loss):
            raise TrainingError(
                f"The loss became {loss} before step {step}. Lower the learning rate "
                f"({recipe.learning_rate:g}) or clip the gradients."
            )
        weights = {name: np.asarray(array) for name, array in (state[0] | frozen).items()}
        transformer = Transformer(start.config, weights, start.mask)
        accuracy = task.accuracy(transformer)
        yield Report(step, loss, accuracy.token, accuracy.sequence, time.perf_counter() - began), transformer


def _chunk_function(
    task: Task, start: Transformer, frozen: JaxWeights, optimiser: optax.GradientTransformation
) -> Callable[..., Any]:
    """The jitted function (state, ids, targets) → (state, losses) over a chunk of batches."""
    logits = jax_forward(start.config, start.mask)
    loss_positions = np.array(task.loss_positions)

    def loss(trained: JaxWeights, ids: jax.Array, targets: jax.Array) -> jax.Array:
        predicted = logits({**trained, **frozen}, ids)[:, loss_positions]
        return optax.softmax_cross_entropy_with_integer_labels(predicted, targets).mean()

    def step(state: Any, batch: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
        trained, moments = state
        value, gradients = jax.value_and_grad(loss)(trained, *batch)
        updates, moments = optimiser.update(gradients, moments, trained)
        return (optax.apply_updates(trained, updates), moments), value

    return jax.jit(lambda state, ids, targets: jax.lax.scan(step, state, (ids, targets)))


def _optimiser(recipe: Recipe) -> optax.GradientTransformation:
    rate: float | optax.Schedule = recipe.learning_rate
    if recipe.warmup:
        rate = optax.warmup_cosine_decay_schedule(0.0, recipe.learning_rate, recipe.warmup, recipe.steps)
    adamw = optax.adamw(rate, b2=recipe.b2, weight_decay=recipe.weight_decay)
    return optax.chain(optax.clip_by_global_norm(recipe.clip), adamw) if recipe.clip else adamw


def _split(start: Transformer) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    """The weights that are trained, and those that stay."""
    weights: Mapping[str, jax.Array] = {name: jnp.asarray(array) for name, array in start.weights.items()}
    frozen = {name: weights[name] for name in start.config.frozen}
    return {name: array for name, array in weights.items() if name not in frozen}, frozen
