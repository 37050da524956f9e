"""The training itself: cycles of steps, until the model implements the program on its training inputs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rasplens.compile import CompiledModel
from rasplens.learned.architecture import Architecture
from rasplens.learned.errors import TrainingError
from rasplens.learned.initialisation import untrained, untrained_like, with_biases
from rasplens.learned.siit.accuracy import implementation_accuracy
from rasplens.learned.siit.circuit import Circuit, nodes_of
from rasplens.learned.siit.interventions import oracle, runner, variables
from rasplens.learned.siit.losses import losses, readout, weighed
from rasplens.learned.siit.recipe import SIITRecipe
from rasplens.model import Transformer
from rasplens.model.random_streams import rng
from rasplens.tasks import Task

CHUNK = 200
"""Steps between two reports."""

Progress = Callable[[int, Mapping[str, float]], None]
"""Called with the step and the mean of each loss since the last call."""

State = tuple[dict[str, jax.Array], Any]
"""Weights and moments."""


def untrained_behind_bos(
    architecture: Architecture, compiled: CompiledModel, task: Task, seed: int
) -> Transformer:
    """An untrained model that reads inputs as the compiled one does: behind a BOS, the last token, if it has one.

    Without, a head that is to say how many tokens it selects has nothing to weigh them against.
    """
    if not compiled.has_bos:
        return untrained(architecture, task, seed)
    config = architecture.config(task)
    config = replace(config, n_ctx=config.n_ctx + 1, d_vocab=config.d_vocab + 1)
    mask = np.broadcast_to(compiled.transformer.mask[:1], (config.n_layers, config.n_ctx, config.n_ctx))
    model = untrained_like(config, mask, seed)
    return with_biases(model) if architecture.bias else model


def trained(
    start: Transformer,
    compiled: CompiledModel,
    circuit: Circuit,
    task: Task,
    recipe: SIITRecipe,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Transformer, int]:
    """The model after as many cycles as it needs, and how many steps these were.

    Raises:
        TrainingError: If the loss becomes infinite or NaN.
    """
    pool = task.sample(rng(seed, "training inputs"), recipe.pool)
    optimiser, chunk = _optimisation(start, compiled, circuit, task, recipe, jnp.asarray(pool))
    weights = {name: jnp.asarray(array) for name, array in start.weights.items()}
    weights |= _readouts(start, compiled, circuit, task)
    key, step = jax.random.key(int(rng(seed, "SIIT interventions").integers(2**31))), 0
    for length in recipe.lengths:
        state: State = weights, optimiser.init(weights)
        schedule = optax.warmup_cosine_decay_schedule(0.0, recipe.learning_rate, recipe.warmup, length)
        rates = schedule(jnp.arange(length))
        key, own = jax.random.split(key)
        keys = jax.random.split(own, length)
        for done in range(0, length, CHUNK):
            some = slice(done, done + CHUNK)
            state, found = chunk(state, (keys[some], rates[some]))
            means = {name: float(values.mean()) for name, values in found.items()}
            step += len(rates[some])
            if not all(np.isfinite(value) for value in means.values()):
                raise TrainingError(
                    f"The loss became {means} before step {step}. Lower the learning rate "
                    f"({recipe.learning_rate:g})."
                )
            if progress is not None:
                progress(step, means)
        weights = state[0]
        model = Transformer(start.config, {name: np.asarray(weights[name]) for name in start.weights}, start.mask)
        own = implementation_accuracy(compiled, model, circuit, task, seed, pool).least
        if min(own[name] for name in ("behaviour", "interchange", "strict")) >= recipe.enough:
            break
    return model, step


def _optimisation(
    start: Transformer, compiled: CompiledModel, circuit: Circuit, task: Task, recipe: SIITRecipe, pool: jax.Array
) -> tuple[optax.GradientTransformation, Callable[..., tuple[State, dict[str, jax.Array]]]]:
    """AdamW but for its rate, and some of its steps: from a state, keys and rates, the next state and losses."""
    nodes = nodes_of(start.config)
    run = runner(start, nodes, {node: (node.head,) for node in nodes if node.is_head}, compiled.offset)
    answers, wanted = oracle(compiled, circuit, task), variables(compiled, circuit, task)
    all_losses = losses(run, answers, wanted, nodes, circuit, task)
    optimiser = optax.chain(
        optax.clip_by_global_norm(recipe.clip),
        optax.scale_by_adam(b2=recipe.b2),
        optax.add_decayed_weights(recipe.weight_decay),
    )

    def loss(weights: dict[str, jax.Array], ids: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        found = all_losses(weights, ids, key)
        return weighed(found, recipe), found

    def step(state: State, drawn: tuple[jax.Array, jax.Array]) -> tuple[State, dict[str, jax.Array]]:
        (weights, moments), (key, rate) = state, drawn
        rows, interventions = jax.random.split(key)
        ids = pool[jax.random.randint(rows, (recipe.batch_size,), 0, len(pool))]
        gradient, found = jax.grad(loss, has_aux=True)(weights, ids, interventions)
        updates, moments = optimiser.update(gradient, moments, weights)
        updates = jax.tree.map(lambda update: -rate * update, updates)
        return (optax.apply_updates(weights, updates), moments), found

    return optimiser, jax.jit(lambda state, drawn: jax.lax.scan(step, state, drawn))


def _readouts(start: Transformer, compiled: CompiledModel, circuit: Circuit, task: Task) -> dict[str, jax.Array]:
    """What reads variables off nodes, zero at first."""
    config, found = start.config, {}
    for node, own in zip(circuit, variables(compiled, circuit, task).shares, strict=True):
        width = config.d_head if node.is_head else config.d_model
        found[readout(node)] = jnp.zeros((width, len(own)))
        found[readout(node, "b")] = jnp.zeros(len(own))
    return found
