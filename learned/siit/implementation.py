"""Training a transformer of ordinary shape to implement a program, each variable in a node that is known."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rasplens.compile import CompiledModel
from rasplens.compile.rasp import SOp
from rasplens.errors import RaspLensError
from rasplens.learned.architecture import Architecture
from rasplens.learned.errors import TrainingError
from rasplens.learned.initialisation import untrained
from rasplens.learned.learned_model import LearnedModel
from rasplens.learned.siit.accuracy import ImplementationAccuracy, implementation_accuracy
from rasplens.learned.siit.circuit import Circuit, check_has_nodes, circuit_of, nodes_of
from rasplens.learned.siit.interventions import oracle, runner
from rasplens.learned.siit.losses import losses, weighed
from rasplens.learned.siit.recipe import SIITRecipe, ordinary_architecture
from rasplens.model import Transformer
from rasplens.model.random_streams import rng
from rasplens.tasks import Task, as_task, compile_for

CHUNK = 200
"""Steps between two reports."""

Progress = Callable[[int, Mapping[str, float]], None]
"""Called with the step and the mean of each loss since the last call."""


@dataclass(frozen=True, eq=False)
class SIITModel:
    """A trained transformer whose circuit is known.

    Attributes:
        transformer: Its weights, for the task's own tokens.
        compiled: The program that it was trained to implement.
        circuit: By node, the variables that it computes; all other nodes are outside of the circuit.
        task: What it was trained on.
        accuracy: How well it does, measured after the training.
        provenance: Where the weights come from, in JSON values.
    """

    transformer: Transformer
    compiled: CompiledModel
    circuit: Circuit
    task: Task
    accuracy: ImplementationAccuracy
    provenance: Mapping[str, Any]

    @property
    def origin(self) -> str:
        """Where the weights come from, in a phrase."""
        return self.provenance["origin"]

    def save(self, path: str | Path) -> None:
        """Writes the model to one safetensors file, which `load_learned` reads: its circuit is in the provenance.

        Raises:
            StorageError: If the folder does not exist.
        """
        LearnedModel(self.transformer, self.task.name, self.provenance).save(path)

    def __repr__(self) -> str:
        parts = "; ".join(f"{node}: {', '.join(part.variables)}" for node, part in self.circuit.items())
        return f"<SIITModel of {self.compiled.output!r}: {parts}; {self.accuracy}>"


def train_to_implement(
    program: CompiledModel | SOp | str,
    task: Task | str,
    architecture: Architecture | None = None,
    recipe: SIITRecipe | None = None,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> SIITModel:
    """A model that computes each of a program's variables in a node of its own, trained by interchange.

    Held-out inputs are never trained on; accuracies are measured on them alone.

    Args:
        program: The program, compiled or not, or the name of one of the task's.
        task: Inputs, and where answers are read; it answers by single labels.
        architecture: Any that has the nodes, see `circuit_of`; `ordinary_architecture` of the program by default.
        recipe: How to train.
        seed: Of weights, inputs and interventions.
        progress: Called every few hundred steps.

    Raises:
        RaspLensError: If the program computes nothing in a head or an MLP, the architecture lacks a node, or the
            task's answers are no single labels.
        TrainingError: If the loss becomes infinite or NaN.
    """
    task, recipe = as_task(task), recipe or SIITRecipe()
    compiled = compile_for(task, program)
    circuit, architecture = circuit_of(compiled), architecture or ordinary_architecture(compiled)
    if task.readout != "label":
        raise RaspLensError(f"SIIT trains on answers that are single labels; those of {task.name!r} are not.")
    if not circuit:
        raise RaspLensError(f"{compiled.output!r} computes nothing in a head or an MLP: there is no circuit.")
    check_has_nodes(architecture, circuit)
    start = untrained(architecture, task, seed)
    weights = _trained(start, compiled, circuit, task, architecture, recipe, seed, progress)
    transformer = Transformer(start.config, weights, start.mask)
    accuracy = implementation_accuracy(compiled, transformer, circuit, task, seed)
    provenance = {
        "origin": f"trained to implement {compiled.output!r} by SIIT with seed {seed}",
        "seed": seed,
        "steps": recipe.steps,
        "architecture": asdict(architecture),
        "recipe": asdict(recipe),
        "circuit": {str(node): list(part.variables) for node, part in circuit.items()},
        "implementation": accuracy.least,
    }
    return SIITModel(transformer, compiled, circuit, task, accuracy, provenance)


def _trained(
    start: Transformer,
    compiled: CompiledModel,
    circuit: Circuit,
    task: Task,
    architecture: Architecture,
    recipe: SIITRecipe,
    seed: int,
    progress: Progress | None,
) -> dict[str, np.ndarray]:
    """The weights after all steps."""
    nodes = nodes_of(architecture)
    run = runner(start, nodes, {node: (node.head,) for node in nodes if node.is_head})
    all_losses = losses(run, oracle(compiled, circuit, task), nodes, circuit, task)
    rate = optax.warmup_cosine_decay_schedule(0.0, recipe.learning_rate, recipe.warmup, recipe.steps)
    optimiser = optax.chain(
        optax.clip_by_global_norm(recipe.clip), optax.adamw(rate, b2=recipe.b2, weight_decay=recipe.weight_decay)
    )
    pool = jnp.asarray(task.sample(rng(seed, "training inputs"), recipe.pool))

    def loss(weights: dict[str, jax.Array], ids: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        found = all_losses(weights, ids, key)
        return weighed(found, recipe), found

    def step(state: tuple[Any, Any], key: jax.Array) -> tuple[tuple[Any, Any], Any]:
        weights, moments = state
        rows, interventions = jax.random.split(key)
        ids = pool[jax.random.randint(rows, (recipe.batch_size,), 0, len(pool))]
        gradient, found = jax.grad(loss, has_aux=True)(weights, ids, interventions)
        updates, moments = optimiser.update(gradient, moments, weights)
        return (optax.apply_updates(weights, updates), moments), found

    chunk = jax.jit(lambda state, keys: jax.lax.scan(step, state, keys))
    weights = {name: jnp.asarray(array) for name, array in start.weights.items()}
    state = weights, optimiser.init(weights)
    keys = jax.random.split(jax.random.key(int(rng(seed, "SIIT interventions").integers(2**31))), recipe.steps)
    for done in range(0, recipe.steps, CHUNK):
        state, found = chunk(state, keys[done : done + CHUNK])
        means = {name: float(values.mean()) for name, values in found.items()}
        if not all(np.isfinite(value) for value in means.values()):
            raise TrainingError(
                f"The loss became {means} before step {done + CHUNK}. Lower the learning rate "
                f"({recipe.learning_rate:g})."
            )
        if progress is not None:
            progress(min(done + CHUNK, recipe.steps), means)
    return {name: np.asarray(array) for name, array in state[0].items()}
