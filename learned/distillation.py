"""Distillation: training a model to match the activations of a compiled one, also under interventions.

The student's weights are learned, noisy and spread out, yet its computation is known. Matching activations on
inputs is not enough: keys, values and neurons may differ in states that no input reaches. So interchange
interventions change the residual stream, one state after the other, and the student has to follow the teacher
from there on (Geiger et al. 2022, "Inducing Causal Structure for Interpretable Neural Networks"). Two variables
change at a time, as in a comparison. What each position would contribute is matched too, so that nothing passes
along edges with little attention.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Int

from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError
from rasplens.learned.initialisation import untrained_like
from rasplens.learned.training.fit import stepwise
from rasplens.model import Transformer, bias_shapes, disguise, hook_names
from rasplens.model.config import residual_points
from rasplens.model.forward import ForwardPass
from rasplens.model.hook_points import EMBEDDED
from rasplens.model.interventions import exchanged
from rasplens.model.random_streams import rng

BATCH, RATE, WARMUP = 128, 1e-2, 100

WIDER = 4
"""Neurons of the student for each neuron of the teacher: learned neurons are less exact."""

LEAST_SCALE = 0.03
"""Errors are relative to the variance of what is matched, or to this share of the embedding's if that is more:
what hardly varies need not be matched to the last digit."""

CHECKED = 20
"""The number of batches on which the final error is measured."""

Weights = dict[str, jax.Array]
Activations = dict[str, jax.Array]


@dataclass(frozen=True, eq=False)
class DistilledModel:
    """A model that was trained to match a compiled one.

    Attributes:
        transformer: The model.
        error: The largest of its mean squared errors, over all that is matched, on inputs and on interventions
            that it was not trained on: as a share of the variance of what the teacher has there.
    """

    transformer: Transformer
    error: float


def distill(
    compiled: CompiledModel, tokens: Int[np.ndarray, "input pos"], seed: int = 0, steps: int = 4_000
) -> DistilledModel:
    """Return a model of the same shape with more neurons, trained to match a compiled one under interventions too.

    The residual stream is matched in a random rotation of its basis. Attention patterns, what heads would write if
    they attended to one position alone, the residual stream and the logits count alike.

    Args:
        compiled: The teacher; without layer norm.
        tokens: Inputs to train on.
        seed: Of the rotation, the weights, the inputs' order and the interventions.
        steps: Of Adam, with a rate that rises and then falls to zero.

    Raises:
        RaspLensError: If there are no steps, or no inputs.
    """
    if not isinstance(steps, int) or steps < 1 or not len(tokens):
        raise RaspLensError(
            f"Distillation needs at least one step and one input; got steps={steps!r} and {len(tokens)} inputs."
        )
    teacher = disguise(compiled, seed, kinds=("residual",))
    student = _untrained(teacher.transformer, seed)
    errors = jax.jit(partial(_errors, teacher, _observer(student), jnp.asarray(tokens)))
    optimiser = optax.adam(optax.warmup_cosine_decay_schedule(0.0, RATE, WARMUP, max(steps, WARMUP + 1)))

    def loss(weights: Weights, rows: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
        return jnp.stack(list(errors(weights, rows, key).values())).mean(), None

    step = stepwise(loss, optimiser)
    weights = {name: jnp.asarray(array) for name, array in student.weights.items()}
    random = rng(seed, "distillation")
    drawn = _drawn(random, len(tokens), steps)
    (weights, _), _ = jax.jit(lambda state: jax.lax.scan(step, state, drawn))((weights, optimiser.init(weights)))
    checks = zip(*_drawn(random, len(tokens), CHECKED), strict=True)
    found = [errors(weights, *drawn) for drawn in checks]
    error = max(float(np.mean([one[name] for one in found])) for name in found[0])
    learned = {name: np.asarray(array) for name, array in weights.items()}
    return DistilledModel(Transformer(student.config, learned, student.mask), error)


def _untrained(teacher: Transformer, seed: int) -> Transformer:
    """Return the untrained student: of the teacher's shape, with more neurons."""
    start = untrained_like(replace(teacher.config, d_mlp=WIDER * teacher.config.d_mlp), teacher.mask, seed)
    shapes = {name: shape for name, shape in bias_shapes(start.config).items() if name in teacher.weights}
    zeros = {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}
    weights = {name: array.astype(np.float32) for name, array in start.weights.items()}
    return Transformer(start.config, {**weights, **zeros}, teacher.mask)


def _drawn(random: np.random.Generator, n_inputs: int, steps: int) -> tuple[jax.Array, jax.Array]:
    """Return the inputs of each step's batch, and a key for its interventions."""
    rows = random.integers(0, n_inputs, (steps, min(BATCH, n_inputs)))
    return jnp.asarray(rows), jax.random.split(jax.random.key(int(random.integers(2**31))), steps)


def _errors(
    teacher: CompiledModel,
    observe_student: Callable[..., Activations],
    tokens: jax.Array,
    weights: Weights,
    rows: jax.Array,
    key: jax.Array,
) -> Activations:
    """Return the relative errors on a batch, by activation and by the state of the stream that was changed."""
    observe = _observer(teacher.transformer)
    own = {name: jnp.asarray(array) for name, array in teacher.transformer.weights.items()}
    batch = tokens[rows]
    clean = observe(own, batch)
    least = LEAST_SCALE * clean[EMBEDDED].var()
    found = {"": (observe_student(weights, batch), clean)}
    for point in residual_points(teacher.transformer.config):
        key, own_key = jax.random.split(key)
        once, twice = jax.random.split(own_key)
        projectors = _projectors(teacher, point)
        changed = _interchanged(_interchanged(clean[point], projectors, once), projectors, twice)
        found[f"from {point}: "] = (
            observe_student(weights, batch, point, changed),
            observe(own, batch, point, changed),
        )
    return {
        start + name: ((student[name] - wanted[name]) ** 2).mean() / jnp.maximum(wanted[name].var(), least)
        for start, (student, wanted) in found.items()
        for name in wanted
    }


def _projectors(teacher: CompiledModel, point: str) -> jax.Array:
    """Return projectors on each variable that a state of the stream holds, and on everything: `[choice, d, d]`."""
    place = hook_names(teacher.transformer.config).index
    variables = [one for one in teacher.variables.values() if not one.is_view]
    there = [one.projector for one in variables if place(one.written_at) <= place(point)]
    return jnp.asarray(np.stack([*there, np.eye(teacher.transformer.config.d_model)]), dtype=jnp.float32)


def _interchanged(stream: jax.Array, projectors: jax.Array, key: jax.Array) -> jax.Array:
    """Return a stream in which half of the positions have one variable, or everything, from another input."""
    choice, where, source = jax.random.split(key, 3)
    n, n_pos, _ = stream.shape
    sources = jax.random.randint(source, (n, n_pos), 0, n)
    projector = projectors[jax.random.randint(choice, (), 0, len(projectors))]
    changed = exchanged(stream, stream[sources, jnp.arange(n_pos)], projector)
    return jnp.where(jax.random.bernoulli(where, 0.5, (n, n_pos, 1)), changed, stream)


def _observer(model: Transformer) -> Callable[..., Activations]:
    """Return a function from weights and tokens to the activations to match, or those behind a given stream."""
    mask, config = jnp.asarray(model.mask), model.config

    def observe(
        weights: Weights, tokens: jax.Array, point: str = "", changed: jax.Array | None = None
    ) -> Activations:
        found: Activations = {}

        def hook(name: str, value: jax.Array) -> jax.Array:
            if name == point and changed is not None:
                found.clear()
                return changed
            if "hook_resid" in name or name.endswith("hook_pattern"):
                found[name] = value
            elif name.endswith("hook_v"):
                found[name] = jnp.einsum("bphd,hde->bphe", value, weights[name.replace("hook_v", "W_O")])
            return value

        logits = ForwardPass(weights, mask, config, hook, jnp, per_head=False).logits(tokens)
        return {**found, "logits": logits}

    return observe
