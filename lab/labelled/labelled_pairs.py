"""Pairs of models whose relation is known: what a comparison is calibrated on, and measured on.

Each of the `circuits` is a program with an alternative program that gives the same answers by another computation.
Known to be the same as a program: the compiled model, its disguises, a noisy one, one compiled without any
optimisation, one whose features share a somewhat narrower residual stream, and a distilled one, trained from
random weights to match the activations of the compiled model, on inputs and on interventions. Known to be
different: all of these for the alternative program, an untrained model, and the program's own architecture trained
on answers that were shuffled. Known to have the same variables, by routes of its own: one that SIIT trained.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lab.labelled.circuits import Circuit
from rasplens.compare.subject.vocabulary import Vocabulary, task_vocabulary, vocabulary_of
from rasplens.compile import CompiledModel, compile_program
from rasplens.errors import RaspLensError
from rasplens.learned import (
    Architecture,
    CompressedModel,
    Recipe,
    compress,
    train,
    train_to_implement,
    untrained_like,
)
from rasplens.learned.compressor import CompressionRecipe
from rasplens.learned.compressor.evaluation import evaluate
from rasplens.learned.distillation import distill
from rasplens.learned.siit.accuracy import PUBLISHED_MARKS
from rasplens.model import HasTransformer, Transformer, disguise, random_streams
from rasplens.model.twins import (
    add_self_edges,
    duplicate_head,
    insert_idle_heads,
    insert_idle_layer,
    plant_decoy,
    plant_dormant_pathway,
    plant_redundant_pathway,
    split_head,
)
from rasplens.tasks import Task
from rasplens.tasks.out_of_distribution import out_of_distribution_inputs

NOISE = 0.02
"""The most that the noise of a noisy model changes a logit: answers are a hundredth or more apart."""

CONDITIONS = (3.0, 10.0, 30.0)
"""Of oblique changes of basis: how many times as long the longest direction is as the shortest."""

CHANGES_OF_A_HEAD: Mapping[str, Callable[[Transformer, int, int], Transformer]] = {
    "head split in two": split_head,
    "head doubled": duplicate_head,
    "head beside a decoy": plant_decoy,
    "dormant pathway": plant_dormant_pathway,
    "redundant pathway": plant_redundant_pathway,
}
"""By kind, an exact change of a transformer at one of its heads."""

ALTERNATIVE = "alternative, "
"""Begins the kind of a model that implements the other program."""

Known = tuple[str, HasTransformer, Vocabulary]
"""A kind, a model of it, and its vocabulary."""


@dataclass(frozen=True, eq=False)
class LabelledPair:
    """A reference and a model of which it is known whether it implements the reference.

    Attributes:
        circuit: The circuit's name.
        program: The reference's name.
        kind: What the model is.
        same: Whether it implements the reference; None where that is not known, or not one of the two.
        reference: The compiled program.
        alternative: The other one.
        model: The model.
        task: What both are asked.
        vocabulary: The model's vocabulary for it.
    """

    circuit: str
    program: str
    kind: str
    same: bool | None
    reference: CompiledModel
    alternative: CompiledModel
    model: HasTransformer
    task: Task
    vocabulary: Vocabulary


COMPRESSED_TO, FAITHFUL_FROM = 0.9, 0.99
"""The share of its directions that a compressed model keeps, and the least share of right answers and cosine of
every variable at which it is known to be the same."""

MOST_ERROR = 0.02
"""The largest error of a distilled model, as a share of the variance, at which it is known to be the same. It is
measured in the directions that its teacher is known to use, which no comparison is told."""

NOT_KNOWN = ", not known"
"""Ends the kind of a model whose training did not come so far: it counts for neither."""

SIIT = "siit"
"""The kind of a model that was trained to compute a program's variables in nodes that are known, and does. It is
the same at the level of variables. Which routes it takes is not known, so that it counts for neither."""

SIIT_REACHES: Mapping[str, float] = {**PUBLISHED_MARKS, "within": 0.99}
"""The accuracies from which on it does; see `ImplementationAccuracy`."""

NARROWER = (1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""The shares of its directions that a model keeps while it is compressed more and more."""

FAITHFUL = CompressionRecipe(
    2_000,
    128,
    1e-2,
    1e-4,
    warmup=200,
    starts=4,
    fitted=3,
    rates=(1.0, 1.0, 0.1, 0.01),
    trial=300,
    layer_weight=10.0,
)
"""A compression that has to match every layer, rather than give sure answers."""

_SHUFFLED = Recipe(Architecture(2, 2, 16, 8), 128, 400, 1e-2, 0.01, warmup=50, clip=1.0)


def labelled_pairs(circuit: Circuit, seed: int = 0) -> Iterator[LabelledPair]:
    """The labelled pairs of a circuit: each of its programs once as the reference.

    Args:
        circuit: Two programs for one task.
        seed: Of disguises, noise, distillations and trainings.
    """
    for pairs in (exact_pairs, compressed_pairs, distilled_pairs, shuffled_pairs):
        yield from pairs(circuit, seed)


def exact_pairs(circuit: Circuit, seed: int = 0) -> Iterator[LabelledPair]:
    """Those whose models compute exactly what a program compiles to, in other weights; and an untrained model."""
    faces = _faces(circuit, seed)
    for own, other in (faces, faces[::-1]):
        yield from _against(circuit, own, other, own.exact, other.exact)
        weights = own.compiled.transformer
        floor = untrained_like(weights.config, weights.mask, seed + 17)
        yield own.pair_with(circuit, other, "untrained", False, floor, own.vocabulary)


def near_pairs(circuit: Circuit, seed: int = 0) -> Iterator[LabelledPair]:
    """A circuit's program against itself, a disguise of it, and its alternative program."""
    own, other = _faces(circuit, seed)
    yield own.pair_with(circuit, other, "itself", True, own.compiled, own.vocabulary)
    disguised = disguise(own.compiled.transformer, own.seed, extra_width=3)
    yield own.pair_with(circuit, other, "disguised", True, disguised, own.vocabulary)
    yield own.pair_with(circuit, other, f"{ALTERNATIVE}itself", False, other.compiled, other.vocabulary)


def compressed_pairs(circuit: Circuit, seed: int = 0) -> Iterator[LabelledPair]:
    """Those whose models are compressed."""
    faces = _faces(circuit, seed)
    for own, other in (faces, faces[::-1]):
        yield from _against(circuit, own, other, own.compressed, other.compressed)


def distilled_pairs(circuit: Circuit, seed: int = 0) -> Iterator[LabelledPair]:
    """Those whose models are distilled; of those whose kind ends in `NOT_KNOWN`, nothing is known."""
    faces = _faces(circuit, seed)
    for own, other in (faces, faces[::-1]):
        yield from _against(circuit, own, other, own.distilled, other.distilled)


def shuffled_pairs(circuit: Circuit, seed: int = 0) -> Iterator[LabelledPair]:
    """A model that was trained on answers that were shuffled, against both programs."""
    faces = _faces(circuit, seed)
    task = faces[0].task
    shuffled = train(_with_shuffled_answers(task, seed), _SHUFFLED, seed).transformer
    for own, other in (faces, faces[::-1]):
        kind = "trained on shuffled answers"
        yield own.pair_with(circuit, other, kind, False, shuffled, task_vocabulary(task))


def siit_pairs(circuit: Circuit, seed: int = 0) -> Iterator[LabelledPair]:
    """Those whose models were trained by SIIT to implement a program; and the compiled programs themselves.

    Where variables of a compiled program cannot be tested on itself, they cannot on any model.
    """
    faces = _faces(circuit, seed)
    for own, other in (faces, faces[::-1]):
        yield own.pair_with(circuit, other, "itself", True, own.compiled, own.vocabulary)
        yield from _against(circuit, own, other, own.siit, other.siit)


def _faces(circuit: Circuit, seed: int) -> "list[_Face]":
    task = circuit.task()
    programs = circuit.program, circuit.alternative
    sides = [compile_program(build(), task.vocab, task.n_ctx, mask=task.visible) for build in programs]
    return [_Face(compiled, task, seed + i) for i, compiled in enumerate(sides)]


def _against(
    circuit: Circuit, own: "_Face", other: "_Face", same: Iterable[Known], different: Iterable[Known]
) -> Iterator[LabelledPair]:
    for kind, model, vocabulary in same:
        yield own.pair_with(circuit, other, kind, _known(kind, True), model, vocabulary)
    for kind, model, vocabulary in different:
        yield own.pair_with(circuit, other, f"{ALTERNATIVE}{kind}", _known(kind, False), model, vocabulary)


def _known(kind: str, same: bool) -> bool | None:
    """Whether a kind of model is known to be the same, which it would be; None where it counts for neither."""
    return None if kind == SIIT or kind.endswith(NOT_KNOWN) else same


def faithfully_compressed(compiled: CompiledModel, seed: int = 0) -> CompressedModel:
    """A compressed model that still does what the program does, by its own layers; of full width if need be.

    Whether it does is judged by what its layers write in the coordinates of the compiled model, which no
    comparison looks at.

    Raises:
        RaspLensError: If no attempt does.
    """
    wide = compiled.transformer.config.d_model
    narrow = max(1, round(COMPRESSED_TO * wide))
    for width in (narrow, wide):
        model = compress(compiled, width, FAITHFUL, seed)
        found = evaluate(model)
        if min(found.token, *found.variables["cosine"]) >= FAITHFUL_FROM:
            return model
    raise RaspLensError(f"No compression of {compiled.output!r} is faithful enough to be known as the same.")


def narrowing(circuit: Circuit, seed: int = 0) -> Iterator[LabelledPair]:
    """A circuit's alternative program against itself in ever narrower residual streams."""
    task = circuit.task()
    other, own = (
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (circuit.program, circuit.alternative)
    )
    wide = own.transformer.config.d_model
    for width in sorted({max(1, round(share * wide)) for share in NARROWER}, reverse=True):
        model = compress(own, width, FAITHFUL, seed)
        names = circuit.name, own.output, f"{width} of {wide} directions"
        yield LabelledPair(*names, None, own, other, model, task, vocabulary_of(own, task))


@dataclass(frozen=True, eq=False)
class _Face:
    """The models that implement one program."""

    compiled: CompiledModel
    task: Task
    seed: int

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return vocabulary_of(self.compiled, self.task)

    @cached_property
    def tokens(self) -> np.ndarray:
        rng = random_streams.rng(self.seed, "labelled pairs")
        ids = np.concatenate([self.task.sample(rng, 1_000), out_of_distribution_inputs(self.task, rng, 1_000)])
        return self.vocabulary.tokens(ids)

    def pair_with(
        self,
        circuit: Circuit,
        other: "_Face",
        kind: str,
        same: bool | None,
        model: HasTransformer,
        vocabulary: Vocabulary,
    ) -> LabelledPair:
        """A model against this program, beside the other program of the circuit."""
        name = self.compiled.output
        return LabelledPair(
            circuit.name, name, kind, same, self.compiled, other.compiled, model, self.task, vocabulary
        )

    @cached_property
    def exact(self) -> tuple[Known, ...]:
        """Made once, though they are compared with both programs."""
        return tuple(self._exact())

    @cached_property
    def compressed(self) -> tuple[Known, ...]:
        """Features share fewer directions.

        Raises:
            RaspLensError: If no compression is faithful.
        """
        return (("compressed", faithfully_compressed(self.compiled, self.seed), self.vocabulary),)

    @cached_property
    def distilled(self) -> tuple[Known, ...]:
        """Trained to follow the compiled model, on interventions too."""
        distilled = distill(self.compiled, self.tokens, self.seed)
        reaches = "" if distilled.error <= MOST_ERROR else NOT_KNOWN
        return ((f"distilled{reaches}", distilled, self.vocabulary),)

    @cached_property
    def siit(self) -> tuple[Known, ...]:
        """Trained to implement the program."""
        model = train_to_implement(self.compiled, self.task, seed=self.seed)
        reaches = "" if model.accuracy.reaches(SIIT_REACHES) else NOT_KNOWN
        return ((f"{SIIT}{reaches}", model, task_vocabulary(self.task, model.prefix)),)

    def _exact(self) -> Iterator[Known]:
        weights, seed, own = self.compiled.transformer, self.seed, self.vocabulary
        yield "itself", self.compiled, own
        yield "disguised", disguise(weights, seed, extra_width=3), own
        for condition in CONDITIONS:
            kind = f"disguised, oblique by {condition:g}"
            yield kind, disguise(weights, seed, basis="oblique", condition=condition, extra_width=2), own
        noisy = disguise(weights, seed + 1, extra_width=5, noise=NOISE, tokens=self.tokens[:200])
        yield "disguised, with noise", noisy, own
        inputs = self.compiled.inputs
        plain = compile_program(
            self.compiled.program, inputs.vocab, inputs.max_len, mask=self.task.visible, optimize=False
        )
        yield "compiled without optimisation", plain, vocabulary_of(plain, self.task)
        yield "idle layer", disguise(insert_idle_layer(weights, 0, seed), seed), own
        yield "idle heads", disguise(insert_idle_heads(weights, 2, seed), seed), own
        if not self.compiled.heads:
            return
        layer, head = next(iter(self.compiled.heads))
        for kind, change in CHANGES_OF_A_HEAD.items():
            with contextlib.suppress(ValueError):  # a head that writes one direction cannot be split
                yield kind, disguise(change(weights, layer, head), seed), own
        with contextlib.suppress(ValueError):  # exact only for heads that attend by position
            yield "self-edges", disguise(add_self_edges(weights, layer, head), seed), own


def _with_shuffled_answers(task: Task, seed: int) -> Task:
    """Return the task with answers that depend on nothing but a hash of the whole input."""
    n = len(task.outputs)

    def target(ids: np.ndarray) -> np.ndarray:
        mixed = (ids * (7919 ** np.arange(1, task.n_ctx + 1) % 104_729)).sum(axis=1, keepdims=True)
        return (mixed * 31 + np.arange(len(task.loss_positions)) * 17 + seed) % 8191 % n

    return replace(task, name=f"{task.name}, shuffled", target=target, programs={})
