"""Training a transformer of ordinary shape to implement a program, each variable in a node that is known."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rasplens.compile import CompiledModel
from rasplens.compile.rasp import SOp
from rasplens.errors import RaspLensError, expect
from rasplens.learned.architecture import Architecture
from rasplens.learned.config import DEFAULTS, TrainConfig
from rasplens.learned.learned_model import LearnedModel, load_learned
from rasplens.learned.siit.accuracy import ImplementationAccuracy, implementation_accuracy
from rasplens.learned.siit.circuit import (
    Circuit,
    CompiledPart,
    Node,
    check_has_nodes,
    check_has_parts,
    check_trainable,
    circuit_of,
    nodes_of,
    stored_circuit,
    variables_by_node,
)
from rasplens.learned.siit.placement import check_order
from rasplens.learned.siit.recipe import SIITRecipe, ordinary_architecture
from rasplens.learned.siit.training import Progress, SIITTraining, untrained_behind_bos
from rasplens.learned.training import loop
from rasplens.model import Transformer
from rasplens.tasks import Task, as_task, compile_for


@dataclass(frozen=True, eq=False)
class SIITModel:
    """A trained transformer whose circuit is known.

    Attributes:
        transformer: Its weights, for the task's own tokens, behind its `prefix`.
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

    @property
    def prefix(self) -> tuple[int, ...]:
        """The ids that stand before every input: a BOS, if the compiled model has one."""
        return tuple(self.provenance["prefix"])

    def save(self, path: str | Path) -> None:
        """Writes the model to one safetensors file, which `load_implementation` reads.

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
    circuit: Circuit | None = None,
    config: TrainConfig = DEFAULTS,
    progress: Progress | None = None,
    state_path: str | Path | None = None,
) -> SIITModel:
    """A model that computes each of a program's variables in a node of its own, trained by interchange.

    Held-out inputs are never trained on; accuracies are measured on them alone.

    Args:
        program: The program, compiled or not, or the name of one of the task's.
        task: Inputs, and where answers are read; it answers by single labels.
        architecture: Any that has the nodes, see `circuit_of`; `ordinary_architecture` of the program by default.
        recipe: How to train.
        seed: Of weights, inputs and interventions.
        circuit: Which node is to stand for which part of the program: the parts of `circuit_of`, at nodes of your
            choice, each behind what it reads; by default as in the compiled model.
        config: How to go about it: how often the state is kept.
        progress: Called every few hundred steps.
        state_path: A `.safetensors` file to keep the state of the training in, with its history beside it as
            `.jsonl`. If it is there already, the training goes on from it, and ends with the very weights that
            it would have had without the interruption.

    Raises:
        RaspLensError: If the program computes nothing in a head or an MLP, the architecture lacks a node, the
            circuit has other parts than the program or one before what it reads, or the task's answers are no
            single labels.
        TrainingError: If the loss becomes infinite or NaN.
        StorageError: If the state cannot be written, is damaged, or is that of another training.
    """
    task, recipe = as_task(task), SIITRecipe() if recipe is None else recipe
    expect(recipe, SIITRecipe, "`recipe` must be a SIITRecipe(...), such as `read_siit_recipe` reads from a file")
    compiled = compile_for(task, program)
    check_trainable(compiled, task)
    architecture = ordinary_architecture(compiled) if architecture is None else architecture
    expect(
        architecture,
        Architecture,
        "`architecture` must be an Architecture(...), such as `ordinary_architecture` gives",
    )
    chosen = circuit_of(compiled) if circuit is None else circuit
    for node, part in chosen.items():
        expect(node, Node, "The keys of `circuit` must be nodes, such as Node(layer, head)")
        expect(part, CompiledPart, "The values of `circuit` must be parts that `circuit_of` gives")
    check_has_nodes(architecture, chosen)
    if circuit is not None:
        check_has_parts(compiled, chosen)
        check_order(compiled, chosen)
    circuit = {node: chosen[node] for node in nodes_of(architecture) if node in chosen}
    start = untrained_behind_bos(architecture, compiled, task, seed)
    job = SIITTraining(start, compiled, circuit, task, recipe, seed)
    end = loop.run(job, progress, state_path, config.save_every)
    transformer = job.model(end.arrays[0])
    accuracy = implementation_accuracy(compiled, transformer, circuit, task, seed)
    provenance = {
        "origin": f"trained to implement {compiled.output!r} by SIIT with seed {seed}",
        "seed": seed,
        "task_digest": task.digest,
        "steps": end.reports[-1].step,
        "architecture": asdict(architecture),
        "recipe": asdict(recipe),
        "circuit": variables_by_node(circuit),
        "implementation": accuracy.least,
        "untested": list(accuracy.untested),
        "prefix": [start.config.d_vocab - 1] if compiled.has_bos else [],
    }
    return SIITModel(transformer, compiled, circuit, task, accuracy, provenance)


def load_implementation(path: str | Path, program: CompiledModel | SOp | str, task: Task | str) -> SIITModel:
    """A stored model that was trained to implement a program, with its circuit. Its accuracies are measured anew.

    Args:
        path: A file by `SIITModel.save` or `rasplens train --siit`.
        program: The program that it was trained to implement.
        task: What it was trained on.

    Raises:
        RaspLensError: If it was trained to implement another program, or for other inputs than the task's.
        StorageError: If there is no such file, or it is damaged.
    """
    task = as_task(task)
    compiled, stored = compile_for(task, program), load_learned(path)
    config, variables = stored.transformer.config, stored.provenance.get("circuit")
    circuit = None if variables is None else stored_circuit(compiled, config, variables)
    if circuit is None:
        raise RaspLensError(f"{path} was not trained to implement {compiled.output!r}.")
    offset = compiled.offset
    if (config.n_ctx, config.d_vocab) != (task.n_ctx + offset, len(task.vocab) + offset):
        raise RaspLensError(
            f"{path} takes {config.n_ctx - offset} positions over {config.d_vocab - offset} tokens; "
            f"{task.name!r} has {task.n_ctx} positions over {len(task.vocab)} tokens. Give the vocabulary and "
            "length that the model has."
        )
    if stored.provenance.get("task_digest", task.digest) != task.digest:
        raise RaspLensError(
            f"{path} was trained on other tokens, inputs or answers than those of {task.name!r}. Give the "
            "vocabulary that it was trained on, in the same order, and its program."
        )
    accuracy = implementation_accuracy(compiled, stored.transformer, circuit, task, stored.provenance["seed"])
    return SIITModel(stored.transformer, compiled, circuit, task, accuracy, stored.provenance)
