"""Models whose circuit is known, of five kinds; most have a decoy, a copy of a head that nothing reads."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from rasplens.compare.discovery.edge_graph import edge_graph
from rasplens.compare.discovery.problem import Problem, discovery_problem
from rasplens.compare.discovery.protocol import Protocol, Setting
from rasplens.compare.discovery.truth import circuit_edges, planted_edges, program_edges, renamed_edges
from rasplens.compare.subject.vocabulary import Vocabulary, task_vocabulary, token_vocabulary, vocabulary_of
from rasplens.compile import CompiledModel, PlantedModel, plant
from rasplens.errors import RaspLensError
from rasplens.learned import Architecture, compress, load_implementation, train_to_implement
from rasplens.learned.compressor.recipe import get_recipe
from rasplens.learned.initialisation import untrained_like
from rasplens.learned.siit.accuracy import PUBLISHED_MARKS
from rasplens.learned.siit.circuit import Circuit, CompiledPart, Node
from rasplens.model import Config, Transformer, causal_mask, disguise
from rasplens.model.random_streams import rng
from rasplens.model.twins import plant_decoy
from rasplens.model.twins.reparametrise import Reparametrisation
from rasplens.tasks import Task
from rasplens.tasks.compiling import check_compiled_for
from rasplens.tasks.task import NO_ANSWER, NOT_ASKED, accuracy_of

KEPT = 0.99
"""Share of answers that a compressed model must get right to count as implementing its program."""

NARROWER = 0.75
"""Width of a compressed residual stream, as a share of the compiled one's."""

COMPRESSION_STEPS = 2_000
"""Training steps of the compressor: more than its fast recipe has, to keep the answers."""


HOST = Architecture(n_layers=2, n_heads=2, d_model=32, d_head=16, d_mlp=64, normalization="LN")
"""What a program is planted in, so many layers deeper than it; small, for ACDC asks every edge many times."""

FOREIGN = 64
"""How many tokens that model has besides the program's."""


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
        circuit: Where its nodes are not those of the compiled model: which of them stand for which parts.
        untested: Nodes of which it is not known whether they compute what they stand for.
    """

    compiled: CompiledModel
    kind: str
    transformer: Transformer
    task: Task
    vocabulary: Vocabulary
    edges: frozenset[str]
    varying: frozenset[str]
    decoys: tuple[str, ...]
    circuit: Circuit | None = None
    untested: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """The program's name."""
        return self.compiled.output

    def truth(self, setting: Setting) -> frozenset[str]:
        """The edges of the circuit: the program's, or those of them whose ablation can be seen."""
        return self.edges if _counts_constants(setting) else self.varying

    def unknown(self, setting: Setting) -> frozenset[str]:
        """The edges that are not scored: at a node that could not be tested, nothing says what is in the circuit.

        Taken from another input, such a node changes no answer of the program, nor of the model. So where edges
        carry other inputs, those that pass the same on all of them are known to be outside.
        """
        graph = edge_graph(self.transformer.config)
        there = {
            edge for edge, is_there in zip(graph.edges, graph.touching(self.untested), strict=True) if is_there
        }
        return frozenset(there if _counts_constants(setting) else there & self.varying)

    @property
    def accuracy(self) -> float:
        """The share of answers to held-out inputs that the model gives right, in [0, 1]."""
        ids, places = self.task.held_out, [self.vocabulary.positions[at] for at in self.task.loss_positions]
        logits = self.transformer(self.vocabulary.tokens(ids))[:, places]
        return accuracy_of(self.task.right(self.vocabulary.codes(logits), ids)).token

    def problem(self, protocol: Protocol) -> Problem:
        """Return the problem that methods are given."""
        return discovery_problem(self, self.task, protocol, self.vocabulary)


def _counts_constants(setting: Setting) -> bool:
    """Whether edges that pass the same on all inputs are in the circuit."""
    return setting.scoring.circuit == "program" or setting.protocol.ablation == "zero"


def compiled_case(compiled: CompiledModel, task: Task, seed: int = 0) -> Case:
    """The compiled model itself, beside a decoy.

    Raises:
        RaspLensError: If it is not of one of the task's programs.
    """
    check_compiled_for(compiled, task)
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

    In superposition no logit is exactly zero. So the model gives an answer where the program has none, and such
    answers are not asked for.

    Raises:
        RaspLensError: If it does not keep the answers.
    """
    plain, asked = compiled_case(compiled, task), where_defined(task)
    width = max(1, round(NARROWER * compiled.transformer.config.d_model))
    found = compress(compiled, width, replace(get_recipe("fast"), steps=COMPRESSION_STEPS), seed)
    own = plain.vocabulary if plain.vocabulary.columns is None else replace(plain.vocabulary, decode=None)
    wide, decoys = _with_decoy(found.transformer, compiled.heads)
    case = replace(plain, kind="compressed", transformer=wide, task=asked, vocabulary=own, decoys=decoys)
    if (kept := case.accuracy) < KEPT:
        raise RaspLensError(
            f"Compressed to {width} directions, the model of {compiled.output!r} keeps only {kept:.3f} of its "
            f"answers (required: {KEPT:g}), so its circuit is not known."
        )
    return case


def where_defined(task: Task) -> Task:
    """Return the task without the answers that the program leaves undefined."""
    undefined = task.answer_code(None)
    if undefined == NO_ANSWER:
        return task
    return replace(task, asked=lambda ids: ~np.isin(task.target(ids), (undefined, NOT_ASKED)))


def siit_case(
    compiled: CompiledModel,
    task: Task,
    seed: int = 0,
    path: str | Path | None = None,
    marks: Mapping[str, float] = PUBLISHED_MARKS,
) -> Case:
    """A model that was trained to implement the program.

    Args:
        compiled: The program.
        task: The task.
        seed: Of the training.
        path: Where the model is stored; without, it is trained.
        marks: Which accuracies it has to have, by name; see `ImplementationAccuracy`.

    Raises:
        RaspLensError: If the stored model implements another program, or is for other inputs; or if the model
            does not implement the program well enough for its circuit to be known, or no node can be tested.
    """
    if path is None:
        model = train_to_implement(compiled, task, seed=seed)
    else:
        model = load_implementation(path, compiled, task)
    if not model.accuracy.reaches(marks):
        least = model.accuracy.least
        short = [
            f"{kind} {least[kind]:.3f}, required {mark:g}"
            for kind, mark in marks.items()
            if kind in least and least[kind] < mark
        ]
        raise RaspLensError(
            f"The model does not implement {compiled.output!r} well enough for its circuit to be known "
            f"({'; '.join(short)}). Train it for more steps{f': {path}' if path else ''}."
        )
    untested = model.accuracy.untested
    if len(untested) == len(model.circuit):
        raise RaspLensError(
            f"No node of the model of {compiled.output!r} can be tested: no answer depends on the output of a "
            "node, so its circuit is not known. Try another program, or longer inputs."
        )
    edges, varying = (circuit_edges(compiled, model.circuit, each) for each in (None, task))
    heads = [(node.layer, node.head) for node in model.circuit if node.is_head]
    wide, decoys = _with_decoy(model.transformer, heads)
    own = task_vocabulary(task, model.prefix)
    return Case(compiled, "siit", wide, task, own, edges, varying, decoys, model.circuit, untested)


def planted_case(
    compiled: CompiledModel, task: Task, seed: int = 0, host: Transformer | None = None, spare: Sequence[int] = ()
) -> Case:
    """A larger model with the compiled one among its heads and neurons: see `rasplens.compile.plant`.

    It is not asked where the program has no answer. It has no decoy: the host's own parts are in no circuit.

    Args:
        compiled: The program, compiled with `causal=True`.
        task: The task.
        seed: Of the host's weights, and of the places in it.
        host: The larger model; by default one with random weights.
        spare: Tokens of the host that the program may take; by default some at random.

    Raises:
        RaspLensError: If the program does not fit into the host.
    """
    check_compiled_for(compiled, task)
    asked = where_defined(task)
    values = list(dict.fromkeys([*task.vocab, *(one for one in asked.outputs if one is not None)]))
    larger = _random_host(compiled, len(values), seed) if host is None else host
    n_tokens = min(larger.config.d_vocab, larger.config.d_vocab_out)
    ids = [*spare] if spare else rng(seed, "host's text").permutation(n_tokens).tolist()
    bos = ids.pop() if compiled.has_bos else None
    if len(ids) < len(values):
        known = "spares" if spare else "has"
        raise RaspLensError(f"The program takes {len(values)} tokens besides a BOS; the host {known} {len(ids)}.")
    tokens = dict(zip(values, ids, strict=False))
    found = plant(compiled, larger, tokens, bos, seed=seed)
    own = token_vocabulary(asked, tokens, prefix=[] if bos is None else [bos])
    circuit = _planted_circuit(found)
    edges, varying = (planted_edges(found, circuit, each) for each in (None, task))
    return Case(compiled, "planted", found.transformer, asked, own, edges, varying, (), circuit)


def _planted_circuit(planted: PlantedModel) -> Circuit:
    """The nodes of a model that a program is planted in, with what they stand for."""
    compiled, places = planted.compiled, planted.places
    found = {
        Node(*places[layer, head]): CompiledPart((name,), layer, (head,))
        for (layer, head), name in sorted(compiled.heads.items())
    }
    for number, layer in enumerate(planted.layers):
        names = [name for (of_layer, *_), name in sorted(compiled.neurons.items()) if of_layer == number]
        if names:
            found[Node(layer)] = CompiledPart(tuple(dict.fromkeys(names)), number)
    return found


def _random_host(compiled: CompiledModel, n_values: int, seed: int) -> Transformer:
    """A model with room for a program, its weights drawn at random."""
    own = compiled.transformer.config
    config = Config(
        n_layers=HOST.n_layers + own.n_layers,
        n_heads=HOST.n_heads,
        d_model=HOST.d_model,
        d_head=HOST.d_head,
        d_mlp=HOST.d_mlp,
        n_ctx=own.n_ctx,
        d_vocab=FOREIGN + n_values,
        d_vocab_out=FOREIGN + n_values,
        activation="gelu_new",
        normalization=HOST.normalization,
    )
    return untrained_like(config, causal_mask(config.n_layers, config.n_ctx), seed)


KINDS: Mapping[str, Callable[..., Case]] = MappingProxyType(
    {
        "compiled": compiled_case,
        "disguised": disguised_case,
        "compressed": compressed_case,
        "siit": siit_case,
        "planted": planted_case,
    }
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
