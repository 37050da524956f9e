"""Models whose circuit is known, of four kinds, with a decoy: a copy of a head that nothing reads."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from rasplens.compare.discovery.problem import Problem, Protocol, discovery_problem
from rasplens.compare.discovery.truth import circuit_edges, program_edges, renamed_edges
from rasplens.compare.models.vocabulary import Vocabulary, task_vocabulary, vocabulary_of
from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError
from rasplens.learned import compress, load_implementation, train_to_implement
from rasplens.learned.compressor.evaluation import evaluate
from rasplens.learned.compressor.recipe import get_recipe
from rasplens.model import Transformer, disguise
from rasplens.model.reparametrise import Reparametrisation
from rasplens.model.twins import plant_decoy
from rasplens.tasks import Task

KEPT = 0.99
"""The answers that a compressed model has to give right to count as one of its program."""

NARROWER = 0.75
"""How wide a compressed residual stream is, of the compiled one's."""


@dataclass(frozen=True, eq=False)
class Case:
    """A model, and which of its edges are in the circuit.

    Attributes:
        compiled: The program.
        kind: How the model was made, of `KINDS`.
        transformer: The model, with a decoy if it has a head that could be copied, and no layer norm.
        task: What it is asked.
        vocabulary: The model's.
        edges: The edges along which anything passes: the truth for zero ablation.
        varying: Those along which something passes that differs between inputs: the truth for other ablations.
        decoys: Nodes that are in no circuit, and look as if they were.
    """

    compiled: CompiledModel
    kind: str
    transformer: Transformer
    task: Task
    vocabulary: Vocabulary
    edges: frozenset[str]
    varying: frozenset[str]
    decoys: tuple[str, ...]

    @property
    def program(self) -> str:
        """The program's name."""
        return self.compiled.output

    def truth(self, protocol: Protocol) -> frozenset[str]:
        """The edges of the circuit: the program's, or those of them whose ablation can be seen."""
        return self.edges if protocol.circuit == "program" or protocol.ablation == "zero" else self.varying

    def problem(self, protocol: Protocol) -> Problem:
        """What methods are given."""
        return discovery_problem(self, self.task, protocol, self.vocabulary)


def compiled_case(compiled: CompiledModel, task: Task, seed: int = 0) -> Case:
    """The compiled model itself, beside a decoy."""
    edges, varying = program_edges(compiled), program_edges(compiled, task)
    wide, decoys = _with_decoy(compiled.transformer, compiled.heads)
    return Case(compiled, "compiled", wide, task, vocabulary_of(compiled, task), edges, varying, decoys)


def disguised_case(compiled: CompiledModel, task: Task, seed: int = 0) -> Case:
    """The compiled model in an oblique basis, its heads in another order."""
    plain = compiled_case(compiled, task)
    found = disguise(_Followed(plain.transformer), seed, extra_width=4, basis="oblique")
    names = {
        f"L{layer}H{old}": f"L{layer}H{new}"
        for layer, heads in enumerate(found.heads)
        for new, old in enumerate(heads)
    }
    edges, varying = (renamed_edges(each, names) for each in (plain.edges, plain.varying))
    decoys = tuple(names[decoy] for decoy in plain.decoys)
    return replace(
        plain, kind="disguised", transformer=found.transformer, edges=edges, varying=varying, decoys=decoys
    )


def compressed_case(compiled: CompiledModel, task: Task, seed: int = 0) -> Case:
    """The compiled model with its residual stream compressed to three quarters: features share directions.

    Raises:
        RaspLensError: If it does not keep the answers.
    """
    width = max(1, round(NARROWER * compiled.transformer.config.d_model))
    found = compress(compiled, width, replace(get_recipe("fast"), steps=2_000), seed)
    kept = evaluate(found).token
    if kept < KEPT:
        raise RaspLensError(
            f"Compressed to {width} directions, {compiled.output!r} keeps {kept:.3f} of its answers."
        )
    wide, decoys = _with_decoy(found.transformer, compiled.heads)
    return replace(compiled_case(compiled, task), kind="compressed", transformer=wide, decoys=decoys)


def siit_case(compiled: CompiledModel, task: Task, seed: int = 0, path: str | Path | None = None) -> Case:
    """A model that was trained to implement the program.

    Args:
        compiled: The program.
        task: The task.
        seed: Of the training.
        path: Where the model is stored; without, it is trained.

    Raises:
        RaspLensError: If the stored model implements another program, or is for other inputs.
    """
    if path is None:
        model = train_to_implement(compiled, task, seed=seed)
    else:
        model = load_implementation(path, compiled, task)
    edges, varying = (circuit_edges(compiled, model.circuit, each) for each in (None, task))
    heads = [(node.layer, node.head) for node in model.circuit if node.is_head]
    wide, decoys = _with_decoy(model.transformer, heads)
    return Case(compiled, "siit", wide, task, task_vocabulary(task, model.prefix), edges, varying, decoys)


KINDS: Mapping[str, Callable[..., Case]] = MappingProxyType(
    {"compiled": compiled_case, "disguised": disguised_case, "compressed": compressed_case, "siit": siit_case}
)
"""How models whose circuit is known are made, by name: each from a compiled model, its task and a seed."""


@dataclass(frozen=True, eq=False)
class _Followed:
    """A transformer that remembers where its heads went."""

    transformer: Transformer
    heads: tuple[np.ndarray, ...] = ()

    def reparametrised(self, change: Reparametrisation) -> "_Followed":
        return _Followed(change.transformer, change.heads)


def _with_decoy(model: Transformer, heads: Collection[tuple[int, int]]) -> tuple[Transformer, tuple[str, ...]]:
    """The model with a copy of its first head that computes something, and the copy's name.

    None without heads, nor with layer norm, which reads every direction: no copy of a head would be unread.
    """
    if not heads or model.config.normalization != "none":
        return model, ()
    layer, head = min(heads)
    return plant_decoy(model, layer, head), (f"L{layer}H{model.config.n_heads}",)
