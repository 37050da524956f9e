"""Pairs of models whose relation is known: what a comparison is calibrated on, and measured on.

Each circuit is a program with a rival that gives the same answers in another way. Known to be the same as a
program: the compiled model, its disguises, a noisy one, one compiled without any optimisation, one whose features
share a somewhat narrower residual stream, and one trained to imitate what the compiled model does inside. Known to
be different: all of these for the rival, an untrained model, and the program's own architecture trained on answers
that were shuffled.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rasplens.compare.interface import Interface, compiled_interface, task_interface
from rasplens.compile import CompiledModel, CompressedModel, compile_program, compress
from rasplens.compile.compression import CompressionRecipe
from rasplens.compile.compression.evaluation import evaluate
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    SOp,
    indices,
    numerical,
    tokens,
)
from rasplens.learned import Architecture, Recipe, train, untrained_like
from rasplens.learned.imitation import imitate
from rasplens.model import Transformer, disguise
from rasplens.tasks import Task, get_task
from rasplens.tasks.program_task import program_task
from rasplens.tasks.variation import varied

NOISE = 0.02
"""The most that the noise of a noisy model changes a logit: answers are a hundredth or more apart."""


@dataclass(frozen=True, eq=False)
class Circuit:
    """Two programs for one task.

    Attributes:
        name: For tables.
        task: Builds the task.
        program: Builds the program.
        rival: Builds another with the same answers.
    """

    name: str
    task: Callable[[], Task]
    program: Callable[[], SOp]
    rival: Callable[[], SOp]


@dataclass(frozen=True, eq=False)
class KnownPair:
    """A reference and a model of which it is known whether it implements the reference.

    Attributes:
        circuit: The circuit's name.
        program: The reference's name.
        kind: What the model is.
        same: Whether it implements the reference; None for a model that does so less and less.
        reference: The compiled program.
        rival: The other one.
        model: The model.
        task: What both are asked.
        interface: The model's words for it.
    """

    circuit: str
    program: str
    kind: str
    same: bool | None
    reference: CompiledModel
    rival: CompiledModel
    model: CompiledModel | Transformer
    task: Task
    interface: Interface


def gather(offset: int, of: SOp, name: str) -> SOp:
    """What stands `offset` positions before, cyclically in a sequence of 5."""
    return Aggregate(Select(indices, indices, lambda k, q: k == (q - offset) % 5), of).named(name)


def shift_at_once() -> SOp:
    """Three positions on, in one step."""
    return gather(3, tokens, "shift_at_once")


def shift_in_steps() -> SOp:
    """One position on, then two."""
    return gather(2, gather(1, tokens, "one_on"), "shift_in_steps")


def reverse_at_once() -> SOp:
    """The sequence backwards, in one step."""
    return Aggregate(Select(indices, indices, lambda k, q: k == 4 - q), tokens).named("reverse_at_once")


def reverse_in_steps() -> SOp:
    """One position on, then backwards from there."""
    back = Select(indices, indices, lambda k, q: k == (5 - q) % 5)
    return Aggregate(back, gather(1, tokens, "moved_on")).named("reverse_in_steps")


def histogram_by_match() -> SOp:
    """How often the own token occurs: the width of a match."""
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("histogram_by_match")


def histogram_by_counts() -> SOp:
    """The same in sequences of 7 of two tokens: the `a`s are counted, and the `b`s are the others."""
    count = SelectorWidth(Select(tokens, tokens, lambda k, q: k == "a")).named("count_a")
    return SequenceMap(lambda t, n: n if t == "a" else 7 - n, tokens, count).named("histogram_by_counts")


def repeated_by_count() -> SOp:
    """Whether the own token occurs more than once: by counting it."""
    width = SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("width")
    return Map(lambda n: n > 1, width).named("repeated_by_count")


def repeated_by_looking() -> SOp:
    """The same: by looking whether the token stands at another position."""
    other = Select(tokens, tokens, Comparison.EQ) & Select(indices, indices, Comparison.NEQ)
    found = Aggregate(other, Map(lambda t: 1, tokens), default=0).named("found_elsewhere")
    return Map(lambda n: n == 1, found).named("repeated_by_looking")


def share_by_average() -> SOp:
    """The share of `a` so far: an average."""
    so_far = Select(indices, indices, Comparison.LEQ)
    return numerical(Aggregate(so_far, numerical(tokens == "a"), default=0)).named("share_by_average")


def share_by_counts() -> SOp:
    """The same: a count, divided by the position."""
    seen = Select(tokens, indices, lambda k, q: k == "a") & Select(indices, indices, Comparison.LEQ)
    count = SelectorWidth(seen).named("count_so_far")
    return numerical(SequenceMap(lambda n, i: n / (i + 1), count, indices)).named("share_by_counts")


def last_at_once() -> SOp:
    """The last token everywhere, in one step."""
    return Aggregate(Select(indices, indices, lambda k, q: k == 4), tokens).named("last_at_once")


def last_in_steps() -> SOp:
    """Two positions on, and from there to everywhere."""
    everywhere = Select(indices, indices, lambda k, q: k == 1)
    return Aggregate(everywhere, gather(2, tokens, "two_on")).named("last_in_steps")


def majority_by_own() -> SOp:
    """Whether most of 7 tokens are `a`: by counting those."""
    count = SelectorWidth(Select(tokens, tokens, lambda k, q: k == "a")).named("count_of_a")
    return Map(lambda n: n > 3, count).named("majority_by_own")


def majority_by_others() -> SOp:
    """The same of two tokens: by counting the others."""
    count = SelectorWidth(Select(tokens, tokens, lambda k, q: k == "b")).named("count_of_b")
    return Map(lambda n: n < 4, count).named("majority_by_others")


def same_as_first_by_reading() -> SOp:
    """Whether a token is the first one: by reading that one, and comparing."""
    first = Aggregate(Select(indices, indices, lambda k, q: k == 0), tokens).named("first_token")
    return SequenceMap(lambda own, other: own == other, tokens, first).named("same_as_first_by_reading")


def same_as_first_by_looking() -> SOp:
    """The same: by looking whether the own token stands at the first position."""
    there = Select(tokens, tokens, Comparison.EQ) & Select(indices, indices, lambda k, q: k == 0)
    found = Aggregate(there, Map(lambda t: 1, tokens), default=0).named("found_first")
    return Map(lambda n: n == 1, found).named("same_as_first_by_looking")


def _copy_task() -> Task:
    return get_task("copy", n_letters=8, block=3, length=9)


def _of_program(
    name: str, vocab: str, program: Callable[[], SOp], rival: Callable[[], SOp], length: int = 5
) -> Circuit:
    return Circuit(name, lambda: program_task(program(), vocab, length), program, rival)


_ALL = (
    Circuit(
        "copy", _copy_task, lambda: _copy_task().programs["offset"], lambda: _copy_task().programs["induction"]
    ),
    _of_program("shift", "abcd", shift_at_once, shift_in_steps),
    _of_program("histogram", "ab", histogram_by_match, histogram_by_counts, length=7),
    _of_program("reverse", "abcd", reverse_at_once, reverse_in_steps),
    _of_program("repeated", "abcd", repeated_by_count, repeated_by_looking),
    _of_program("share", "abc", share_by_average, share_by_counts),
    _of_program("last", "abcd", last_at_once, last_in_steps),
    _of_program("majority", "ab", majority_by_own, majority_by_others, length=7),
    _of_program("same_as_first", "abcd", same_as_first_by_reading, same_as_first_by_looking),
)
CIRCUITS = {circuit.name: circuit for circuit in _ALL}
"""The circuits by name."""

FITTED_ON, LOOKED_AT = ("copy", "shift", "histogram"), ("reverse", "repeated", "share")
"""The mapping is fitted on some circuits. A first measurement on others showed faults that were mended."""

NEW = ("last", "majority", "same_as_first")
"""Circuits that nothing was fitted on or mended for."""

MEASURED_ON = (*LOOKED_AT, *NEW)

COMPRESSED_TO, FAITHFUL_FROM = 0.9, 0.99
"""The share of its directions that a compressed model keeps, and the least share of right answers and cosine of
every variable at which it is known to be the same."""

NARROWER = (1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""The shares of its directions that a model keeps while it is compressed more and more."""

FAITHFUL = CompressionRecipe(2_000, 128, 1e-2, 1e-4, warmup=200, starts=2, trial=300, layer_weight=10.0)
"""A compression that has to match every layer, rather than give sure answers."""

CAREFUL = replace(FAITHFUL, learning_rate=3e-4, final_learning_rate=1e-5)
"""The same for programs with steep neurons, which larger steps throw off."""

_SHUFFLED = Recipe(Architecture(2, 2, 16, 8), 128, 400, 1e-2, 0.01, warmup=50, clip=1.0)


def known_pairs(circuit: Circuit, seed: int = 0) -> Iterator[KnownPair]:
    """The known pairs of a circuit: each of its programs once as the reference.

    Args:
        circuit: Two programs for one task.
        seed: Of disguises, noise, imitations and trainings.
    """
    task = circuit.task()
    sides = [
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (circuit.program, circuit.rival)
    ]
    faces = [_Face(compiled, task, seed + i) for i, compiled in enumerate(sides)]
    shuffled = train(_with_shuffled_answers(task, seed), _SHUFFLED, seed).transformer
    for own, other in (faces, faces[::-1]):
        names = circuit.name, own.compiled.output
        both = own.compiled, other.compiled
        for kind, model, words in own.models():
            yield KnownPair(*names, kind, True, *both, model, task, words)
        for kind, model, words in other.models():
            yield KnownPair(*names, f"rival, {kind}", False, *both, model, task, words)
        weights = own.compiled.transformer
        floor = untrained_like(weights.config, weights.mask, seed + 17)
        yield KnownPair(*names, "untrained", False, *both, floor, task, own.words)
        yield KnownPair(*names, "trained on shuffled answers", False, *both, shuffled, task, task_interface(task))


def faithfully_compressed(compiled: CompiledModel, seed: int = 0) -> CompressedModel:
    """A compressed model that still does what the program does, by its own layers; of full width if need be.

    Whether it does is judged by what its layers write in the coordinates of the compiled model, which no
    comparison looks at.

    Raises:
        ValueError: If no attempt does.
    """
    wide = compiled.transformer.config.d_model
    narrow = max(1, round(COMPRESSED_TO * wide))
    for width, recipe in ((narrow, FAITHFUL), (narrow, CAREFUL), (wide, CAREFUL)):
        model = compress(compiled, width, recipe, seed)
        found = evaluate(model)
        if min(found.token, *found.variables["cosine"]) >= FAITHFUL_FROM:
            return model
    raise ValueError(f"No compression of {compiled.output!r} is faithful enough to be known as the same.")


def narrowing(circuit: Circuit, seed: int = 0) -> Iterator[KnownPair]:
    """A circuit's rival program against itself in ever narrower residual streams."""
    task = circuit.task()
    other, own = (
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (circuit.program, circuit.rival)
    )
    wide = own.transformer.config.d_model
    for width in sorted({max(1, round(share * wide)) for share in NARROWER}, reverse=True):
        model = compress(own, width, FAITHFUL, seed)
        names = circuit.name, own.output, f"{width} of {wide} directions"
        yield KnownPair(*names, None, own, other, model, task, compiled_interface(own, task))


@dataclass(frozen=True, eq=False)
class _Face:
    """The models that implement one program."""

    compiled: CompiledModel
    task: Task
    seed: int

    @cached_property
    def words(self) -> Interface:
        return compiled_interface(self.compiled, self.task)

    @cached_property
    def tokens(self) -> np.ndarray:
        rng = np.random.default_rng([self.seed, 14])
        ids = np.concatenate([self.task.sample(rng, 1_000), varied(self.task, rng, 1_000)])
        return self.words.tokens(ids)

    def models(self) -> Iterator[tuple[str, CompiledModel | Transformer, Interface]]:
        """Kind, model, and the model's words."""
        weights = self.compiled.transformer
        yield "itself", self.compiled, self.words
        yield "disguised", disguise(weights, self.seed, extra_width=3), self.words
        noisy = disguise(weights, self.seed + 1, extra_width=5, noise=NOISE, tokens=self.tokens[:200])
        yield "disguised, with noise", noisy, self.words
        inputs = self.compiled.inputs
        plain = compile_program(
            self.compiled.program, inputs.vocab, inputs.max_len, mask=self.task.visible, optimize=False
        )
        yield "compiled without optimisation", plain, compiled_interface(plain, self.task)
        yield "compressed", faithfully_compressed(self.compiled, self.seed), self.words
        yield "imitation", imitate(weights, self.tokens, self.seed), self.words


def _with_shuffled_answers(task: Task, seed: int) -> Task:
    """The same inputs with answers that depend on nothing but a hash of the whole input."""
    n = len(task.outputs)

    def target(ids: np.ndarray) -> np.ndarray:
        mixed = (ids * (7919 ** np.arange(1, task.n_ctx + 1) % 104_729)).sum(axis=1, keepdims=True)
        return (mixed * 31 + np.arange(len(task.loss_positions)) * 17 + seed) % 8191 % n

    return replace(task, name=f"{task.name}, shuffled", target=target, programs={})
