"""The training itself: cycles of steps, until the model implements the program on its training inputs."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
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
from rasplens.learned.siit.circuit import Circuit, nodes_of, variables_by_node
from rasplens.learned.siit.interventions import oracle, runner, variables
from rasplens.learned.siit.losses import InputBatch, SIITTarget, inputs_of, losses, readout, weighed
from rasplens.learned.siit.recipe import SIITRecipe
from rasplens.learned.training.fit import adamw, cosine, updated
from rasplens.learned.training.loop import ChunkedRun, RunState
from rasplens.model import Transformer
from rasplens.model.random_streams import rng
from rasplens.model.storage import fingerprint
from rasplens.tasks import Task
from rasplens.tasks.task import Ids

CHUNK = 200
"""Steps between two reports."""

Weights = dict[str, jax.Array]
"""Of the model, and of what reads variables off its nodes."""

State = tuple[Weights, Any]
"""Weights, and the optimiser's moments."""


@dataclass(frozen=True)
class SIITReport:
    """How a strict interchange-intervention training stands after a chunk of steps.

    Attributes:
        step: Steps done, over all cycles.
        losses: By name, the mean of each loss over the chunk; see `losses`.
        seconds: Since the start, compilation included and interruptions not.
    """

    step: int
    losses: Mapping[str, float]
    seconds: float = 0.0


Progress = Callable[[SIITReport], None]
"""Called after every chunk of steps."""


def untrained_behind_bos(
    architecture: Architecture, compiled: CompiledModel, task: Task, seed: int
) -> Transformer:
    """An untrained model that reads inputs as the compiled one does: behind a BOS, the last token, if it has one.

    Without a BOS, a head that counts the tokens it selects has nothing to weigh them against.
    """
    if not compiled.has_bos:
        return untrained(architecture, task, seed)
    config = architecture.config(task)
    config = replace(config, n_ctx=config.n_ctx + 1, d_vocab=config.d_vocab + 1)
    mask = np.broadcast_to(compiled.transformer.mask[:1], (config.n_layers, config.n_ctx, config.n_ctx))
    model = untrained_like(config, mask, seed)
    return with_biases(model) if architecture.bias else model


@dataclass(frozen=True, eq=False)
class SIITTraining(ChunkedRun[SIITReport]):
    """The training of a model to implement a program.

    The standing's arrays are its `State`; its notes say how many cycles are done, how many steps of the present
    one, and whether the model implements the program well enough.

    Attributes:
        start: The untrained model.
        compiled: The program.
        circuit: Which node is to compute what.
        task: Inputs, and where answers are read.
        recipe: How to train.
        seed: Of inputs and interventions.
    """

    start: Transformer
    compiled: CompiledModel
    circuit: Circuit
    task: Task
    recipe: SIITRecipe
    seed: int
    report = SIITReport

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """The task, the program's weights, the untrained model, and all that decides how it is trained."""
        return {
            "task": f"{self.task.name} ({self.task.digest})",
            "program": f"{self.compiled.output} ({fingerprint(self.compiled.transformer)})",
            "circuit": variables_by_node(self.circuit),
            "recipe": asdict(self.recipe),
            "seed": self.seed,
            "untrained model": fingerprint(self.start),
            "chunk": CHUNK,
        }

    @cached_property
    def pool(self) -> Ids:
        """The inputs that are trained on."""
        return self.task.sample(rng(self.seed, "training inputs"), self.recipe.pool)

    @cached_property
    def steps(self) -> "Steps":
        """The optimiser, and its compiled steps."""
        return _steps(
            self.start, self.compiled, self.circuit, self.task, self.recipe, inputs_of(self.task, self.pool)
        )

    def layout(self) -> State:
        """The first state."""
        return self.first().arrays

    def first(self) -> RunState[SIITReport]:
        """Untrained weights, and readouts that are zero."""
        weights = {name: jnp.asarray(array) for name, array in self.start.weights.items()}
        weights |= _readouts(self.start, self.compiled, self.circuit, self.task)
        notes = {"cycles": 0, "steps": 0, "is_enough": False}
        return RunState((weights, self.steps[0].init(weights)), notes)

    def is_done(self, at: RunState[SIITReport]) -> bool:
        """Whether the model is good enough, or there is no further cycle."""
        return at.notes["is_enough"] or at.notes["cycles"] == self.recipe.cycles

    def chunk(self, at: RunState[SIITReport]) -> RunState[SIITReport]:
        """The standing after some steps; behind the last one of a cycle, the model is measured.

        Raises:
            TrainingError: If the loss becomes infinite or NaN.
        """
        cycle, done = at.notes["cycles"], at.notes["steps"]
        optimiser, some_steps = self.steps
        keys, rates = self._drawn(cycle)
        now = slice(done, done + CHUNK)
        (weights, moments), found = some_steps(at.arrays, (keys[now], rates[now]))
        before = at.reports[-1].step if at.reports else 0
        new = SIITReport(before + len(rates[now]), {name: float(values.mean()) for name, values in found.items()})
        check_is_finite(new.losses, new.step, self.recipe)
        notes = {"cycles": cycle, "steps": now.stop, "is_enough": False}
        if now.stop >= len(rates):
            moments = optimiser.init(weights)
            notes = {"cycles": cycle + 1, "steps": 0, "is_enough": self._is_enough(weights)}
        return RunState((weights, moments), notes, (*at.reports, new))

    def model(self, weights: Weights) -> Transformer:
        """Return the trained model, without the readouts."""
        own = {name: np.asarray(weights[name]) for name in self.start.weights}
        return Transformer(self.start.config, own, self.start.mask)

    def _drawn(self, cycle: int) -> tuple[jax.Array, jax.Array]:
        """A random key and a learning rate for each step of a cycle."""
        length = self.recipe.lengths[cycle]
        key = jax.random.key(int(rng(self.seed, "SIIT interventions").integers(2**31)))
        for _ in range(cycle + 1):
            key, own = jax.random.split(key)
        return jax.random.split(own, length), cosine(self.recipe, length)(jnp.arange(length))

    def _is_enough(self, weights: Weights) -> bool:
        asked = self.compiled, self.model(weights), self.circuit, self.task, self.seed, self.pool
        kinds = ["behaviour", "interchange", "strict", *(["within"] if self.recipe.both else [])]
        return implementation_accuracy(*asked).reaches(dict.fromkeys(kinds, self.recipe.enough))


def check_is_finite(losses: Mapping[str, float], step: int, recipe: SIITRecipe) -> None:
    """Raises where a loss is no number.

    Raises:
        TrainingError: With all losses.
    """
    if not all(np.isfinite(value) for value in losses.values()):
        raise TrainingError(
            f"The loss became {dict(losses)} before step {step}. Lower the learning rate "
            f"({recipe.learning_rate:g})."
        )


Steps = tuple[optax.GradientTransformation, Callable[..., tuple[State, dict[str, jax.Array]]]]
"""AdamW but for its rate, and some of its steps: from a state, keys and rates, the next state and losses."""


def _steps(
    start: Transformer, compiled: CompiledModel, circuit: Circuit, task: Task, recipe: SIITRecipe, pool: InputBatch
) -> Steps:
    nodes = nodes_of(start.config)
    run = runner(start, nodes, compiled.offset)
    target = SIITTarget(circuit, oracle(compiled, circuit, task), variables(compiled, circuit, task))
    all_losses = losses(run, nodes, target, task, recipe.both)
    optimiser = adamw(recipe, clip=recipe.clip)

    def loss(weights: dict[str, jax.Array], inputs: InputBatch, key: jax.Array) -> tuple[jax.Array, Any]:
        found = all_losses(weights, inputs, key)
        return weighed(found, recipe), found

    def step(state: State, drawn: tuple[jax.Array, jax.Array]) -> tuple[State, dict[str, jax.Array]]:
        (weights, moments), (key, rate) = state, drawn
        rows, interventions = jax.random.split(key)
        inputs = pool.some(rows, recipe.batch_size)
        gradient, found = jax.grad(loss, has_aux=True)(weights, inputs, interventions)
        return updated(optimiser, weights, moments, gradient, rate), found

    return optimiser, jax.jit(lambda state, drawn: jax.lax.scan(step, state, drawn))


def _readouts(start: Transformer, compiled: CompiledModel, circuit: Circuit, task: Task) -> Weights:
    """Return the weights that read variables off nodes, zero at first."""
    config = start.config
    found: Weights = {}
    wanted = variables(compiled, circuit, task)(jnp.asarray(task.held_out[:1]))
    for node, value in zip(circuit, wanted, strict=True):
        width = config.d_head if node.is_head else config.d_model
        found[readout(node)] = jnp.zeros((width, value.shape[-1]))
        found[readout(node, "b")] = jnp.zeros(value.shape[-1])
    return found
