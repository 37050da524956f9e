"""Interchange interventions on nodes, many at once: every input has its own nodes, positions and sources."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rasplens.compile import CompiledModel
from rasplens.compile.variable import nearest
from rasplens.learned.siit.circuit import Circuit, CompiledPart, Node
from rasplens.model import Transformer
from rasplens.model.forward import ForwardPass
from rasplens.model.interventions import Replace
from rasplens.model.random_streams import rng
from rasplens.tasks import Task
from rasplens.tasks.task import NO_ANSWER

Outputs = dict[str, jax.Array]
"""By hook point, what the nodes there give."""

N_SCALED = 1_000
"""Inputs on which the scale of a compiled model's parts is found."""

VARIES = 1e-4
"""Standard deviations below this are those of a constant."""

DIGITS, NEAR = 3, 6e-4
"""Of a part's vectors: how far they are rounded to find its values, and how near a vector is to its value."""

MOST_VALUES = 64
"""Of a part, that have a direction each; rarer ones have the code alone."""


class NodeInterchange(NamedTuple):
    """An interchange of nodes: which are taken, and from which inputs.

    Attributes:
        taken: Which nodes, at which positions, are as on another input: `[node, batch, pos]`.
        source: That input's place in the batch: `[node, batch]`.
    """

    taken: jax.Array
    source: jax.Array


Runner = Callable[..., tuple[jax.Array, Outputs]]
"""From weights and tokens, the logits and what the nodes give; an interchange takes some of it from elsewhere."""


def runner(model: Transformer, nodes: Sequence[Node | CompiledPart], offset: int = 0) -> Runner:
    """The forward pass of a model with its nodes, or a compiled model's parts, open to interchange.

    Args:
        model: Its config and mask are constants of it.
        nodes: In the order of an interchange's first axis.
        offset: 1 for a model that reads inputs behind a BOS, its last token, at which nothing is interchanged.

    Returns:
        A function from weights and ids `[batch, pos]` to logits `[batch, pos, logit]` and what its nodes give,
        both without the BOS.
    """
    mask, config = jnp.asarray(model.mask), model.config
    at_point: dict[str, list[int]] = {}
    for i, node in enumerate(nodes):
        at_point.setdefault(node.point, []).append(i)

    def run(
        weights: Mapping[str, jax.Array],
        ids: jax.Array,
        interchange: NodeInterchange | None = None,
        given: Outputs | None = None,
    ) -> tuple[jax.Array, Outputs]:
        found: Outputs = {}

        def hook(name: str, value: jax.Array) -> jax.Array:
            if name not in at_point:
                return value
            bos, value = value[:, :offset], value[:, offset:]
            found[name] = value
            if interchange is not None and given is not None:
                for i in at_point[name]:
                    own = np.isin(np.arange(config.n_heads), nodes[i].heads)
                    where = interchange.taken[i][..., None] & own if nodes[i].heads else interchange.taken[i]
                    value = Replace(name, given[name][interchange.source[i]], where).edit(name, value, {}, jnp)
            return jnp.concatenate([bos, value], axis=1)

        behind_bos = jnp.pad(ids, ((0, 0), (offset, 0)), constant_values=config.d_vocab - 1)
        logits = ForwardPass(weights, mask, config, hook, jnp, per_head=False).logits(behind_bos)
        return logits[:, offset:], found

    return run


def oracle(compiled: CompiledModel, circuit: Circuit, task: Task) -> Callable[..., jax.Array]:
    """The program's answers under interchange, by the compiled model; `NO_ANSWER` where it has none.

    Returns:
        A function from the task's ids `[batch, pos]` and an interchange of the circuit's nodes to the task's
        codes, `[batch, loss_pos]`.
    """
    run = runner(compiled.transformer, list(circuit.values()), compiled.offset)
    weights = {name: jnp.asarray(array) for name, array in compiled.transformer.weights.items()}
    decode = _decoder(compiled, task)

    def answers(ids: jax.Array, interchange: NodeInterchange | None = None) -> jax.Array:
        logits, given = run(weights, ids)
        if interchange is not None:
            logits, _ = run(weights, ids, interchange, given)
        return decode(logits[:, jnp.asarray(task.loss_positions)])

    return answers


def variables(compiled: CompiledModel, circuit: Circuit, task: Task) -> Callable[[jax.Array], list[jax.Array]]:
    """Return a function that gives the program's variables on inputs, node by node, told twice.

    Once in its own code, and once with a direction for each value. In its code alone, some values hardly differ:
    where w tokens are selected, a head gives 1/(1+w). By values alone, a node need not have the program's code.

    Returns:
        A function from the task's ids `[batch, pos]` to arrays `[batch, pos, direction]`, each direction with mean
        zero and variance one over the task's inputs; directions that are the same on all of them are left out.
    """
    parts = list(circuit.values())
    run = runner(compiled.transformer, parts, compiled.offset)
    weights = {name: jnp.asarray(array) for name, array in compiled.transformer.weights.items()}

    def given(ids: jax.Array) -> list[jax.Array]:
        _, found = run(weights, ids)
        return [_of_part(found[part.point], part.heads) for part in parts]

    drawn = given(jnp.asarray(task.sample(rng(0, "SIIT variables"), N_SCALED)))
    values = [_values(np.asarray(one)) for one in drawn]
    told = [_told(one, own) for one, own in zip(drawn, values, strict=True)]
    means, deviations = ([f(one, axis=(0, 1)) for one in told] for f in (jnp.mean, jnp.std))
    varies = [np.flatnonzero(np.asarray(deviation) > VARIES) for deviation in deviations]

    def scaled(ids: jax.Array) -> list[jax.Array]:
        found = zip(given(ids), values, means, deviations, varies, strict=True)
        return [((_told(one, own) - mean) / deviation)[..., those] for one, own, mean, deviation, those in found]

    return scaled


def _values(vectors: np.ndarray) -> np.ndarray:
    """The vectors that occur most often, `[value, direction]`, of `[batch, pos, direction]`."""
    found, counts = np.unique(vectors.reshape(-1, vectors.shape[-1]).round(DIGITS), axis=0, return_counts=True)
    return found[np.argsort(-counts, kind="stable")[:MOST_VALUES]]


def _told(vectors: jax.Array, values: np.ndarray) -> jax.Array:
    """Vectors `[..., direction]`, and beside each which of the values it is: `[..., direction + value]`."""
    is_value = (jnp.abs(vectors[..., None, :] - values) < NEAR).all(axis=-1)
    return jnp.concatenate([vectors, is_value], axis=-1)


def _of_part(value: jax.Array, heads: tuple[int, ...]) -> jax.Array:
    """Return the output of heads, side by side, or of an MLP: `[batch, pos, direction]`."""
    return value[:, :, jnp.asarray(heads)].reshape(*value.shape[:2], -1) if heads else value


def _decoder(compiled: CompiledModel, task: Task) -> Callable[[jax.Array], jax.Array]:
    """From the compiled model's logits, the task's codes."""
    output = compiled.variables[compiled.output]
    tolerance, code_of = compiled.tolerance(output), jnp.asarray(task.codes_of(compiled))

    def decode(logits: jax.Array) -> jax.Array:
        codes, errors = nearest(output, logits, jnp)
        return jnp.where(errors > tolerance, NO_ANSWER, code_of[codes])

    return decode
