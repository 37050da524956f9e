"""The compiled programs of training: chunks of AdamW steps and a look at accuracy, for all seeds at once.

An ensemble is one program over its members, each with its own weights and inputs; a single model is an
ensemble of one. The inputs of a step are shared out among JAX's devices.
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rasplens.learned.config import DEFAULTS, TrainConfig
from rasplens.learned.initialisation import untrained
from rasplens.learned.recipes import Recipe
from rasplens.learned.training.fit import adamw, cosine, stepwise
from rasplens.learned.training.layer_plan import plan_layers
from rasplens.learned.training.live_forward import live_forward
from rasplens.model import Config
from rasplens.model.jax_forward import JaxWeights, for_members
from rasplens.tasks import Task
from rasplens.tasks.readout import answer_codes

Weights = dict[str, jax.Array]
State = tuple[Weights, Any]
"""Trained weights and the optimiser's state; every array has the members of the ensemble as its first axis."""

ForwardBuilder = Callable[[Config, np.ndarray, tuple[int, ...]], Callable[[JaxWeights, jax.Array], jax.Array]]

_AT_ONCE = 256
"""Inputs that are evaluated together: more would not fit into a core's cache."""

EVERYWHERE, BY_INPUT = PartitionSpec(), PartitionSpec(None, None, "inputs")


@dataclass(frozen=True, eq=False)
class TrainingSteps:
    """The compiled functions of training.

    Attributes:
        begin: From the members' first weights, the state before the first step.
        run: (state, active, ids, targets) → (state, losses): a chunk of steps, with ids
            `[member, step, batch, pos]`, targets `[member, step, batch, loss_pos]` and losses
            `[member, step]`. A member that is not active stays as it is.
        answers: (weights, ids) → the answers to some inputs, `[member, input, loss_pos]`.
    """

    begin: Callable[[Weights], State]
    run: Callable[..., tuple[State, jax.Array]]
    answers: Callable[..., jax.Array]


@lru_cache(maxsize=8)
def build_steps(
    task: Task, recipe: Recipe, n_devices: int, forward: ForwardBuilder = live_forward
) -> TrainingSteps:
    """The programs that train a recipe's architecture on a task; those built last are kept.

    Args:
        task: What is trained, and where its answers are read.
        recipe: How to train.
        n_devices: Among how many of JAX's devices the inputs of a step are shared out.
        forward: From config, mask and positions, the function (weights, tokens) → logits there.
    """
    start = untrained(recipe.architecture, task, 0)
    logits = forward(start.config, start.mask, recipe.objective(task).loss_positions)
    read = forward(start.config, start.mask, task.loss_positions)
    frozen = {name: jnp.asarray(start.weights[name]) for name in start.config.frozen}
    optimiser = build_optimiser(recipe)
    codes = partial(answer_codes, task.logit_table, task.readout, xp=jnp)

    def loss(trained: Weights, ids: jax.Array, targets: jax.Array) -> tuple[jax.Array, jax.Array]:
        predicted, asked = logits({**trained, **frozen}, ids), targets >= 0
        losses = losses_of(task, predicted, jnp.maximum(targets, 0))
        share = _mean_over_devices(asked.mean(), n_devices)  # every answer asked for counts alike
        value = jnp.where(asked, losses, 0).mean() / share
        return value, value

    step = stepwise(loss, optimiser, lambda found: _mean_over_devices(found, n_devices))

    def run(state: State, active: jax.Array, *batches: jax.Array) -> tuple[State, jax.Array]:
        stay = (state, jnp.zeros(len(batches[0])))
        return jax.lax.cond(active, lambda: jax.lax.scan(step, state, batches), lambda: stay)

    def answers(trained: Weights, ids: jax.Array) -> jax.Array:
        padded = jnp.pad(ids, ((0, -len(ids) % _AT_ONCE), (0, 0))).reshape(-1, _AT_ONCE, ids.shape[1])
        given = jax.lax.map(lambda batch: codes(read({**trained, **frozen}, batch)), padded)
        return given.reshape(-1, len(task.loss_positions))[: len(ids)]

    return TrainingSteps(
        jax.vmap(optimiser.init),
        jax.jit(_shared_out(for_members(run), n_devices)),
        jax.jit(lambda trained, ids: for_members(lambda weights: answers(weights, ids))(trained)),
    )


def losses_of(task: Task, predicted: jax.Array, targets: jax.Array) -> jax.Array:
    """The loss of each answer, from logits `[..., logit]` and codes `[...]`.

    Cross-entropy for one label, its mean over labels for several at once, in nats; for a number the squared error.
    """
    if task.logit_table is None:
        return optax.softmax_cross_entropy_with_integer_labels(predicted, targets)
    wanted = jnp.asarray(task.logit_table)[targets]
    if task.readout == "number":
        return jnp.square(predicted - wanted)[..., 0]
    return optax.sigmoid_binary_cross_entropy(predicted, wanted).mean(axis=-1)


def build_optimiser(recipe: Recipe) -> optax.GradientTransformation:
    """AdamW as the recipe says, with its schedule and clipping."""
    rate = cosine(recipe, recipe.steps) if recipe.warmup else recipe.learning_rate
    return adamw(recipe, rate, clip=recipe.clip)


def use_all_cores(config: TrainConfig = DEFAULTS) -> None:
    """Lets cores share the inputs of a training step: up to twice the speed on two cores.

    Call it before anything runs in JAX, as the command line does; later it changes nothing. A training that
    resumes from a state on disk needs as many devices as it began with.
    """
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", min(config.most_devices, os.cpu_count() or 1))


def usable_devices(task: Task, recipe: Recipe, config: TrainConfig = DEFAULTS) -> int:
    """Return how many of JAX's devices share the inputs of a step: evenly, and only if that is faster."""
    shape = recipe.architecture.config(task)
    read = recipe.objective(task).loss_positions
    plans = plan_layers(task.mask(shape.n_layers), read, shape.smeared_keys)
    scores = [shape.n_heads * len(plan.free) * len(plan.keys) for plan in plans]
    largest = recipe.batch_size * max(*scores, len(read) * shape.d_vocab_out, 0)
    if largest < config.worth_sharing:
        return 1
    most = min(config.most_devices, len(jax.devices()))
    return max(n for n in range(1, most + 1) if recipe.batch_size % n == 0)


def _shared_out(run: Callable[..., Any], n_devices: int) -> Callable[..., Any]:
    """Return the program with its inputs split among devices, and everything else on each of them."""
    if n_devices == 1:
        return run
    mesh = Mesh(np.array(jax.devices()[:n_devices]), ("inputs",))
    shared = jax.shard_map(
        run,
        mesh=mesh,
        in_specs=(EVERYWHERE, EVERYWHERE, BY_INPUT, BY_INPUT),
        out_specs=EVERYWHERE,
        check_vma=False,
    )

    def place(state: State, active: jax.Array, ids: jax.Array, targets: jax.Array) -> tuple[State, jax.Array]:
        ids, targets = (jax.device_put(array, NamedSharding(mesh, BY_INPUT)) for array in (ids, targets))
        return shared(jax.device_put(state, NamedSharding(mesh, EVERYWHERE)), active, ids, targets)

    return place


def _mean_over_devices(tree: Any, n_devices: int) -> Any:
    if n_devices == 1:
        return tree
    flat, unravel = ravel_pytree(tree)
    return unravel(jax.lax.pmean(flat, "inputs"))
