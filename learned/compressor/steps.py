"""The compiled programs of a compression: steps of AdamW on the map, for all widths and seeds at once.

Maps of fewer columns than the widest are filled up with zeros. Those stay: a direction that nothing is written to
and nothing is read from has no gradient.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rasplens.compile.compiled import CompiledModel
from rasplens.learned.compressor.examples import Examples, masks
from rasplens.learned.compressor.projection import layer_outputs, reading_through
from rasplens.learned.compressor.recipe import CROSS_ENTROPY, CompressionRecipe, OutputLoss
from rasplens.learned.training.fit import adamw, updated
from rasplens.model import random_streams
from rasplens.model.forward import ForwardPass
from rasplens.model.jax_forward import for_members

MEMORY = 100
"""Steps over which the loss is averaged (exponentially) to say which map is the best one."""

Loss = Callable[[jax.Array, jax.Array], tuple[jax.Array, tuple[jax.Array, jax.Array]]]
"""(map, places of inputs in the pool) → (what is minimised, (loss of the answers, loss of the layers))."""

FIRST_LOOK = 1_000
"""About as many inputs of the pool say what the loss of a first map is."""


class State(NamedTuple):
    """Where a training stands; every array has the members as its first axis.

    Attributes:
        projection: The maps, `[member, D, d]`.
        moments: The optimiser's state.
        rate: The share of the recipe's learning rate.
        loss: The mean loss of the last steps; at first that of inputs from all over the pool.
        least: The least that it has been.
        best: The maps at that step. Steep neurons can throw a training off a good map, and not let it come back.
    """

    projection: jax.Array
    moments: Any
    rate: jax.Array
    loss: jax.Array
    least: jax.Array
    best: jax.Array


@dataclass(frozen=True, eq=False)
class CompressionSteps:
    """The compiled functions of a compression.

    Attributes:
        begin: From the first maps and the shares of the learning rate, the state before the first step.
        run: (state, first step, seeds, number of steps) → (state, output losses, layer losses `[member, step]`).
    """

    begin: Callable[[jax.Array, jax.Array], State]
    run: Callable[[State, int, jax.Array, int], tuple[State, jax.Array, jax.Array]]


def first_maps(n_directions: int, members: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Random orthonormal columns for each member (d, then its seeds), filled up with zeros to the widest."""
    maps = np.zeros((len(members), n_directions, max(d for d, *_ in members)), dtype=np.float32)
    for own, (d, *seeds) in zip(maps, members, strict=True):
        rng = random_streams.first_map(d, *seeds)
        own[:, :d] = np.linalg.qr(rng.normal(size=(n_directions, d)))[0]
    return maps


def build_loss(
    compiled: CompiledModel, pool: Examples, recipe: CompressionRecipe, output_loss: OutputLoss
) -> Loss:
    """The loss of a map on some inputs of the pool: of the answers, and of what every layer writes.

    Args:
        compiled: The model.
        pool: The inputs.
        recipe: For how much the layers weigh.
        output_loss: The loss of the answers.
    """
    transformer = compiled.transformer
    weights = {name: jnp.asarray(array, dtype=jnp.float32) for name, array in transformer.weights.items()}
    tokens, real = jnp.asarray(pool.tokens), jnp.asarray(pool.real)
    sees = jnp.asarray(masks(compiled, pool.real))
    answered = jnp.asarray(pool.real & (np.arange(pool.real.shape[1]) >= compiled.offset))
    points = layer_outputs(transformer.config.n_layers, transformer.config.attn_only)

    def outputs(weights: dict[str, jax.Array], chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Logits `[batch, ctx, logit]`, and what each layer writes `[part, batch, ctx, D]`."""
        written: dict[str, jax.Array] = {}

        def keep(name: str, value: jax.Array) -> jax.Array:
            written[name] = value
            return value

        run = ForwardPass(weights, sees[:, chosen], transformer.config, keep, jnp, per_head=False)
        logits = run.logits(tokens[chosen])
        return logits, jnp.stack([written[point] for point in points])

    everything = jnp.arange(len(tokens))
    wanted_logits, wanted_parts = jax.jit(outputs)(weights, everything)
    codes = wanted_logits.argmax(axis=-1)
    if output_loss == CROSS_ENTROPY:
        answered &= wanted_logits.max(axis=-1) > 0.5

    def loss(projection: jax.Array, chosen: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        logits, parts = outputs(reading_through(weights, projection @ projection.T), chosen)
        if output_loss == CROSS_ENTROPY:
            each = optax.softmax_cross_entropy_with_integer_labels(logits, codes[chosen])
        else:
            each = ((logits - wanted_logits[chosen]) ** 2).sum(axis=-1)
        counted = answered[chosen]
        output = jnp.where(counted, each, 0).sum() / jnp.maximum(1, counted.sum())
        off = ((parts - wanted_parts[:, chosen]) ** 2).sum(axis=(0, 3))
        layers = jnp.where(real[chosen], off, 0).sum() / real[chosen].sum()
        return output + recipe.layer_weight * layers, (output, layers)

    return loss


def build_steps(
    compiled: CompiledModel, pool: Examples, recipe: CompressionRecipe, output_loss: OutputLoss
) -> CompressionSteps:
    """The programs that train maps for a compiled model.

    Args:
        compiled: The model.
        pool: The inputs from which those of every step are drawn.
        recipe: How to train.
        output_loss: The loss of the answers.
    """
    loss, n_inputs = build_loss(compiled, pool, recipe, output_loss), len(pool.tokens)
    optimiser = build_optimiser(recipe)

    def step(state: State, key: jax.Array) -> tuple[State, tuple[jax.Array, jax.Array]]:
        chosen = jax.random.randint(key, (recipe.batch_size,), 0, n_inputs)
        (now, found), gradient = jax.value_and_grad(loss, has_aux=True)(state.projection, chosen)
        projection, moments = updated(optimiser, state.projection, state.moments, gradient, state.rate)
        mean = jnp.where(jnp.isfinite(state.loss), state.loss + (now - state.loss) / MEMORY, now)
        is_best = mean <= state.least
        after = State(
            projection=projection,
            moments=moments,
            rate=state.rate,
            loss=mean,
            least=jnp.where(is_best, mean, state.least),
            best=jnp.where(is_best, state.projection, state.best),
        )
        return after, found

    @jax.jit
    def begin(maps: jax.Array, rates: jax.Array) -> State:
        some = jnp.arange(0, n_inputs, max(1, n_inputs // FIRST_LOOK))
        at_first, _ = for_members(lambda projection: loss(projection, some))(maps)
        return State(maps, jax.vmap(optimiser.init)(maps), rates, at_first, at_first, maps)

    @partial(jax.jit, static_argnames="size")
    def run(
        state: State, start: jax.Array | int, seeds: jax.Array, size: int
    ) -> tuple[State, jax.Array, jax.Array]:
        def of_member(own: State, seed: jax.Array) -> tuple[State, tuple[jax.Array, jax.Array]]:
            keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(seed), i))(start + jnp.arange(size))
            return jax.lax.scan(step, own, keys)

        state, (output, layers) = for_members(of_member)(state, seeds)
        return state, output, layers

    return CompressionSteps(begin, run)


def build_optimiser(recipe: CompressionRecipe) -> optax.GradientTransformation:
    """AdamW with the recipe's linear rise and fall."""
    decay = max(1, int(recipe.decay * recipe.steps) - recipe.warmup)
    rate = optax.linear_schedule(recipe.learning_rate, recipe.final_learning_rate, decay)
    if recipe.warmup:
        rise = optax.linear_schedule(0.0, recipe.learning_rate, recipe.warmup)
        rate = optax.join_schedules([rise, rate], [recipe.warmup])
    return adamw(recipe, rate, b1=recipe.b1)
