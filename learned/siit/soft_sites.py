"""Where a model computes a program's variables, chosen by training: of each part, every node has a share.

When a part is taken from another input, every node that could stand for it moves towards what it gives there, by
the part's share of it. Shares are a softmax, trained with the weights, and a falling temperature makes them sharp.
What no part has a share of is resampled as nodes outside of a circuit are. At the end each part gets a node of its
own, behind those of the parts that it reads.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from rasplens.compile import CompiledModel
from rasplens.compile.rasp import SOp
from rasplens.learned.architecture import Architecture
from rasplens.learned.siit.circuit import Circuit, CompiledPart, Node, check_trainable, circuit_of, nodes_of
from rasplens.learned.siit.interventions import oracle, runner
from rasplens.learned.siit.losses import InputBatch, cross_entropy, inputs_of, random_interchange, weighed
from rasplens.learned.siit.placement import could_stand_for, placed, reads
from rasplens.learned.siit.recipe import SIITRecipe, ordinary_architecture
from rasplens.learned.siit.training import (
    CHUNK,
    Progress,
    SIITReport,
    adamw,
    check_is_finite,
    rates,
    untrained_behind_bos,
)
from rasplens.model import Transformer
from rasplens.model.random_streams import rng
from rasplens.tasks import Task, as_task, compile_for

FIRST_TEMPERATURE, LAST_TEMPERATURE = 1.0, 0.05
"""Of the softmax, at the first step and at the last."""

FASTER = 10.0
"""Scores of shares change so many times as fast as weights."""

CROWDING = 1.0
"""The weight of the penalty on shares of one node that add up to more than it."""

SEARCH = SIITRecipe(steps=2_000, cycles=1)
"""How long a model is trained to find its sites, by default."""


State = dict[str, Any]
"""The model's weights, and the scores that shares are the softmax of."""


class Mixture(NamedTuple):
    """What nodes move towards, by shares.

    Attributes:
        taken: Which parts, at which positions, are as on another input: `[part, batch, pos]`.
        source: That input's place in the batch: `[part, batch]`.
        shares: How far each node moves for each part: `[part, node]`.
        possible: Which of them are not zero in any case: `[part, node]`.
    """

    taken: jax.Array
    source: jax.Array
    shares: jax.Array
    possible: np.ndarray

    def patched(self, i: int, value: jax.Array, given: jax.Array, own: np.ndarray | None) -> jax.Array:
        """What a hook point has, with the i-th node moved."""
        moved = value
        for part in np.flatnonzero(self.possible[:, i]):
            share = self.taken[part][..., None] * self.shares[part, i]
            share = share if own is None else (share * own)[..., None]
            moved = moved + share * (given[self.source[part]] - value)
        return moved


@dataclass(frozen=True, eq=False)
class LearnedSites:
    """Where a model came to compute a program's variables.

    Attributes:
        circuit: Each part's node.
        shares: Of each part, of each node, at the end of the training: `[part, node]`, rows add up to 1.
        parts: The parts, in their order.
        nodes: The nodes, in theirs.
        losses: By name, the mean over the last steps.
    """

    circuit: Circuit
    shares: Float[np.ndarray, "part node"]
    parts: tuple[CompiledPart, ...]
    nodes: tuple[Node, ...]
    losses: Mapping[str, float]

    @property
    def least_share(self) -> float:
        """The least that a part has of the node it got: near 1 where training chose, lower where it did not."""
        row_of = {part: row for row, part in enumerate(self.parts)}
        return min(float(self.shares[row_of[part], self.nodes.index(node)]) for node, part in self.circuit.items())

    def __repr__(self) -> str:
        placed = "; ".join(f"{node}: {part}" for node, part in self.circuit.items())
        return f"<Sites: {placed}; least share {self.least_share:.3f}>"


def learn_sites(
    program: CompiledModel | SOp | str,
    task: Task | str,
    architecture: Architecture | None = None,
    recipe: SIITRecipe = SEARCH,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> LearnedSites:
    """Which nodes of a model come to compute a program's variables when none is told which.

    The model that is trained to find out is thrown away: `train_to_implement` takes the circuit.

    Args:
        program: The program, compiled or not, or the name of one of the task's.
        task: Inputs, and where answers are read; it answers by single labels.
        architecture: Of the model; `ordinary_architecture` of the program by default.
        recipe: How to train, in one cycle of its steps. Its `cycles`, `enough`, `both` and `readout` change
            nothing here.
        seed: Of weights, inputs and interventions.
        progress: Called every few hundred steps.

    Raises:
        RaspLensError: If the program computes nothing in a head or an MLP, the architecture has no room for it, or
            the task's answers are no single labels.
        TrainingError: If the loss becomes infinite or NaN.
    """
    task = as_task(task)
    compiled = compile_for(task, program)
    check_trainable(compiled, task)
    architecture = architecture or ordinary_architecture(compiled)
    parts, nodes = tuple(circuit_of(compiled).values()), tuple(nodes_of(architecture))
    order = reads(compiled, parts)
    placed(np.where(could_stand_for(parts, nodes), 1.0, 0.0), parts, nodes, order)  # raises where there is no room
    start = untrained_behind_bos(architecture, compiled, task, seed)
    shares, found = _trained(start, compiled, task, recipe, seed, progress or (lambda now: None))
    return LearnedSites(placed(shares, parts, nodes, order), shares, parts, nodes, found)


def _trained(
    start: Transformer, compiled: CompiledModel, task: Task, recipe: SIITRecipe, seed: int, progress: Progress
) -> tuple[Float[np.ndarray, "part node"], dict[str, float]]:
    """The shares after the training, and the losses of its last chunk of steps."""
    possible = could_stand_for(tuple(circuit_of(compiled).values()), tuple(nodes_of(start.config)))
    losses = _losses(start, compiled, task)
    weights = {name: jnp.asarray(array) for name, array in start.weights.items()}
    state: State = {"weights": weights, "scores": jnp.zeros(possible.shape)}
    pool = inputs_of(task, task.sample(rng(seed, "training inputs"), recipe.pool))
    optimiser = adamw(recipe)

    def total(state: State, inputs: InputBatch, temperature: jax.Array, key: jax.Array) -> Any:
        found = losses(state["weights"], _softmax(state["scores"], possible, temperature), inputs, key)
        crowding = CROWDING * found["crowding"]
        return crowding + weighed({k: v for k, v in found.items() if k != "crowding"}, recipe), found

    def step(
        at: tuple[State, Any], drawn: tuple[jax.Array, ...]
    ) -> tuple[tuple[State, Any], dict[str, jax.Array]]:
        (state, moments), (temperature, rate, key) = at, drawn
        rows, interventions = jax.random.split(key)
        inputs = pool.some(rows, recipe.batch_size)
        gradient, found = jax.grad(total, has_aux=True)(state, inputs, temperature, interventions)
        updates, moments = optimiser.update(gradient, moments, state)
        updates = jax.tree.map(lambda update: -rate * update, updates)
        return (optax.apply_updates(state, updates), moments), found

    keys = jax.random.split(jax.random.key(int(rng(seed, "SIIT sites").integers(2**31))), recipe.steps)
    temperatures = jnp.geomspace(FIRST_TEMPERATURE, LAST_TEMPERATURE, recipe.steps)
    drawn = temperatures, rates(recipe, recipe.steps), keys
    some_steps = jax.jit(lambda at, drawn: jax.lax.scan(step, at, drawn))
    at: tuple[State, Any] = (state, optimiser.init(state))
    now: dict[str, float] = {}
    began = time.perf_counter()
    for first in range(0, recipe.steps, CHUNK):
        some = slice(first, min(first + CHUNK, recipe.steps))
        at, found = some_steps(at, tuple(one[some] for one in drawn))
        now = {name: float(values.mean()) for name, values in found.items()}
        check_is_finite(now, some.stop, recipe)
        progress(SIITReport(some.stop, now, time.perf_counter() - began))
    return np.asarray(_softmax(at[0]["scores"], possible, LAST_TEMPERATURE)), now


def _softmax(scores: jax.Array, possible: np.ndarray, temperature: float | jax.Array) -> jax.Array:
    return jax.nn.softmax(jnp.where(possible, FASTER * scores / temperature, -jnp.inf), axis=1)


def _losses(start: Transformer, compiled: CompiledModel, task: Task) -> Callable[..., dict[str, jax.Array]]:
    """By name, cross-entropies as in `losses`, and how far the shares of a node add up to more than it."""
    circuit, nodes = circuit_of(compiled), tuple(nodes_of(start.config))
    possible = could_stand_for(tuple(circuit.values()), nodes)
    run = runner(start, nodes, compiled.offset)
    answers = oracle(compiled, circuit, task)
    read = jnp.asarray(task.loss_positions)

    def found(weights: Any, shares: jax.Array, inputs: InputBatch, key: jax.Array) -> dict[str, jax.Array]:
        ids, asked = inputs
        of_parts, of_rest = jax.random.split(key)
        logits, given = run(weights, ids)
        behaviour = cross_entropy(logits[:, read], answers(ids), asked)
        part = random_interchange(of_parts, len(circuit), *ids.shape)
        mixed = run(weights, ids, Mixture(part.taken, part.source, shares, possible), given)[0]
        together = shares.sum(axis=0)
        rest = random_interchange(of_rest, len(nodes), *ids.shape)
        outside = jnp.diag(jax.nn.relu(1 - together))
        resampled = run(
            weights, ids, Mixture(rest.taken, rest.source, outside, np.eye(len(nodes), dtype=bool)), given
        )
        return {
            "behaviour": behaviour,
            "interchange": cross_entropy(mixed[:, read], answers(ids, part), asked),
            "strict": cross_entropy(resampled[0][:, read], answers(ids), asked),
            "crowding": (jax.nn.relu(together - 1) ** 2).sum(),
        }

    return found
