"""Pairs of models whose relation is known: what a comparison is calibrated on, and measured on.

Each of the `circuits` is a program with an alternative program that gives the same answers by another computation.
Known to be the same as a program: the compiled model, its disguises, a noisy one, one compiled without any
optimisation, one whose features share a somewhat narrower residual stream, and a distilled one, trained from
random weights to match the activations of the compiled model. Known to be different: all of these for the
alternative program, an untrained model, and the program's own architecture trained on answers that were shuffled.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rasplens.compare.models.vocabulary import Vocabulary, task_vocabulary, vocabulary_of
from rasplens.compare.verdict.calibration.circuits import Circuit
from rasplens.compile import CompiledModel, compile_program
from rasplens.learned import Architecture, CompressedModel, Recipe, compress, train, untrained_like
from rasplens.learned.compressor import CompressionRecipe
from rasplens.learned.compressor.evaluation import evaluate
from rasplens.learned.distillation import distill_activations
from rasplens.model import HasTransformer, disguise
from rasplens.tasks import Task
from rasplens.tasks.out_of_distribution import out_of_distribution_inputs

NOISE = 0.02
"""The most that the noise of a noisy model changes a logit: answers are a hundredth or more apart."""


@dataclass(frozen=True, eq=False)
class LabelledPair:
    """A reference and a model of which it is known whether it implements the reference.

    Attributes:
        circuit: The circuit's name.
        program: The reference's name.
        kind: What the model is.
        same: Whether it implements the reference; None for a model that does so less and less.
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
    task = circuit.task()
    sides = [
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (circuit.program, circuit.alternative)
    ]
    faces = [_Face(compiled, task, seed + i) for i, compiled in enumerate(sides)]
    shuffled = train(_with_shuffled_answers(task, seed), _SHUFFLED, seed).transformer
    for own, other in (faces, faces[::-1]):
        names = circuit.name, own.compiled.output
        both = own.compiled, other.compiled
        for kind, model, vocabulary in own.models:
            yield LabelledPair(*names, kind, True, *both, model, task, vocabulary)
        for kind, model, vocabulary in other.models:
            yield LabelledPair(*names, f"alternative, {kind}", False, *both, model, task, vocabulary)
        weights = own.compiled.transformer
        floor = untrained_like(weights.config, weights.mask, seed + 17)
        yield LabelledPair(*names, "untrained", False, *both, floor, task, own.vocabulary)
        yield LabelledPair(
            *names, "trained on shuffled answers", False, *both, shuffled, task, task_vocabulary(task)
        )


def faithfully_compressed(compiled: CompiledModel, seed: int = 0) -> CompressedModel:
    """A compressed model that still does what the program does, by its own layers; of full width if need be.

    Whether it does is judged by what its layers write in the coordinates of the compiled model, which no
    comparison looks at.

    Raises:
        ValueError: If no attempt does.
    """
    wide = compiled.transformer.config.d_model
    narrow = max(1, round(COMPRESSED_TO * wide))
    for width in (narrow, wide):
        model = compress(compiled, width, FAITHFUL, seed)
        found = evaluate(model)
        if min(found.token, *found.variables["cosine"]) >= FAITHFUL_FROM:
            return model
    raise ValueError(f"No compression of {compiled.output!r} is faithful enough to be known as the same.")


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
        rng = np.random.default_rng([self.seed, 14])
        ids = np.concatenate([self.task.sample(rng, 1_000), out_of_distribution_inputs(self.task, rng, 1_000)])
        return self.vocabulary.tokens(ids)

    @cached_property
    def models(self) -> tuple[tuple[str, HasTransformer, Vocabulary], ...]:
        """Kind, model, and the model's vocabulary; made once, though they are compared with both programs."""
        return tuple(self._made())

    def _made(self) -> Iterator[tuple[str, HasTransformer, Vocabulary]]:
        weights = self.compiled.transformer
        yield "itself", self.compiled, self.vocabulary
        yield "disguised", disguise(weights, self.seed, extra_width=3), self.vocabulary
        noisy = disguise(weights, self.seed + 1, extra_width=5, noise=NOISE, tokens=self.tokens[:200])
        yield "disguised, with noise", noisy, self.vocabulary
        inputs = self.compiled.inputs
        plain = compile_program(
            self.compiled.program, inputs.vocab, inputs.max_len, mask=self.task.visible, optimize=False
        )
        yield "compiled without optimisation", plain, vocabulary_of(plain, self.task)
        yield "compressed", faithfully_compressed(self.compiled, self.seed), self.vocabulary
        yield "distilled", distill_activations(weights, self.tokens, self.seed), self.vocabulary


def _with_shuffled_answers(task: Task, seed: int) -> Task:
    """The same inputs with answers that depend on nothing but a hash of the whole input."""
    n = len(task.outputs)

    def target(ids: np.ndarray) -> np.ndarray:
        mixed = (ids * (7919 ** np.arange(1, task.n_ctx + 1) % 104_729)).sum(axis=1, keepdims=True)
        return (mixed * 31 + np.arange(len(task.loss_positions)) * 17 + seed) % 8191 % n

    return replace(task, name=f"{task.name}, shuffled", target=target, programs={})
