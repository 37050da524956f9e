"""Sets of programs with inputs to train and to score on: our library, and the cases of InterpBench.

InterpBench (Gupta et al. 2024, arXiv 2407.14494) has programs of Tracr with vocabularies and lengths. Written here
from their descriptions: the cases of its main evaluation, but for IOI, which is no program. Its lengths count a
BOS, ours do not.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from rasplens.compile import CompiledModel
from rasplens.compile.rasp import programs
from rasplens.compile.rasp.language import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    SOp,
    Value,
    indices,
    tokens,
)
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, CAUSAL, Entry
from rasplens.learned import Architecture, ordinary_architecture
from rasplens.tasks import Task, compile_for, task_from_program

LONGER = 2
"""By so much inputs are longer than the catalogue's: of a few hundred inputs, those held out are too new."""

WORDS = ("J", "LB", "TPSI", "V", "b", "no", "oCLrZaW", "poiVg")
"""InterpBench draws its vocabulary of words at random, with seed 42; these."""

SPAM = ("click", "free", "now", "offer")

MOODS = {"😊": "positive", "😢": "negative", "📘": "neutral"}


def _of_each(name: str, function: Callable[[Value], Value]) -> Callable[[], SOp]:
    """A program that looks at each token by itself."""
    return lambda: Map(function, tokens).named(name)


def _trend() -> SOp:
    """Whether the next number is larger, smaller or the same."""

    def compared(own: int, following: int) -> str:
        return "constant" if own == following else "increasing" if own < following else "decreasing"

    return SequenceMap(compared, tokens, programs.shift_by(-1)).named("trend")


def _frequency_class() -> SOp:
    """How large a token's share of the sequence is, in three classes."""

    def classified(count: int, length: int) -> str:
        return "frequent" if 2 * count > length else "common" if 4 * count > length else "rare"

    return SequenceMap(classified, programs.histogram(), programs.length()).named("frequency_class")


def _without_repeats() -> SOp:
    """Each token that differs from the one before it."""
    differs = SequenceMap(lambda own, before: own if own != before else None, tokens, programs.shift_by(1))
    return differs.named("without_repeats")


def _first_occurrences() -> SOp:
    """Each token at the place where it occurs first."""
    placed = SequenceMap(lambda token, place: (token, place), tokens, indices).named("placed")
    before = Select(placed, placed, lambda key, query: key[0] == query[0] and key[1] <= query[1])
    so_far = SelectorWidth(before).named("so_far")
    first = SequenceMap(lambda count, place: place if count == 1 else -1, so_far, indices).named("first_place")
    return Aggregate(Select(first, indices, Comparison.EQ), tokens).named("first_occurrences")


def _alternates() -> SOp:
    """Whether a token differs from both of its neighbours."""
    differs = [
        SequenceMap(lambda own, other: own != other, tokens, programs.shift_by(offset)).named(f"differs_{offset}")
        for offset in (1, -1)
    ]
    return SequenceMap(lambda one, other: one and other, *differs).named("alternates")


def _mean_length_of_equals() -> SOp:
    """The mean length of the words that are as long as this one."""
    length = Map(len, tokens).named("word_length")
    return Aggregate(Select(length, length, Comparison.EQ), length).named("mean_length_of_equals")


def _vowels_to_consonants(word: str) -> float:
    vowels = sum(letter in "aeiou" for letter in word.lower())
    return vowels / (len(word) - vowels) if vowels < len(word) else float("inf")


def _alternately_capital(word: str) -> str:
    return "".join(letter.lower() if i % 2 else letter.upper() for i, letter in enumerate(word))


def _cascade() -> SOp:
    return SequenceMap(lambda token, place: token * (place + 1), tokens, indices).named("cascade")


INTERPBENCH: Mapping[str, Entry] = {
    "case_3": Entry(lambda: programs.frac_prevs((tokens == "x").named("is_x")), "abcx", 4, CAUSAL),
    "case_11": Entry(_mean_length_of_equals, WORDS, 9, CAUSAL),
    "case_13": Entry(_trend, (0, 1, 2), 9),
    "case_18": Entry(_frequency_class, "abcde", 9),
    "case_19": Entry(_without_repeats, "abc", 14, CAUSAL),
    "case_20": Entry(
        _of_each("is_spam", lambda word: "spam" if word in SPAM else "not spam"),
        ("J", "LB", "TPSI", "V", "b", "click", "no", "now", "oCLrZaW", "offer", "poiVg", "spam"), 9, CAUSAL,
    ),
    "case_21": Entry(_first_occurrences, "abc", 9, CAUSAL),
    "case_26": Entry(_cascade, "abc", 9, CAUSAL),
    "case_29": Entry(_of_each("abbreviated", lambda word: word[:3]), WORDS, 9, CAUSAL),
    "case_33": Entry(_of_each("is_even", lambda word: len(word) % 2 == 0), WORDS, 9, CAUSAL),
    "case_34": Entry(_of_each("vowels_to_consonants", _vowels_to_consonants), WORDS, 9, CAUSAL),
    "case_35": Entry(_of_each("alternately_capital", _alternately_capital), WORDS, 9, CAUSAL),
    "case_36": Entry(_of_each("mood", lambda token: MOODS[token]), tuple(MOODS), 9, CAUSAL),
    "case_37": Entry(
        _of_each("backwards", lambda word: word if word == "nochange" else word[::-1]), WORDS, 9, CAUSAL
    ),
    "case_38": Entry(_alternates, "abc", 9),
}  # fmt: skip
"""By InterpBench's own numbers."""


def _longer(entry: Entry) -> Entry:
    return Entry(entry.build, entry.vocab, entry.max_len + LONGER, entry.options)


SETS: Mapping[str, Mapping[str, Entry]] = {
    "library": {name: _longer(entry) for name, entry in CATALOGUE.items()},
    "interpbench": INTERPBENCH,
}
"""Programs by the name of their set and their own."""


def compiled_task(programs_of: str, name: str) -> tuple[Task, CompiledModel]:
    """A program's own answers on all inputs of one length, and the program compiled for them.

    Those of InterpBench are compiled as by Tracr: every function has an MLP, also one of the tokens alone.
    """
    entry = SETS[programs_of][name]
    causal = dict(entry.options).get("causal", False)
    task = task_from_program(entry.build(), entry.vocab, entry.max_len, causal=causal)
    return task, compile_for(task, optimize=programs_of != "interpbench")


NARROWER_STREAM = {
    "case_18": 1.6, "case_21": 1.3, "case_26": 2.0, "case_29": 2.0, "case_34": 1.5, "case_35": 3.0, "case_36": 2.5,
    "case_37": 2.2,
}  # fmt: skip
"""By how much InterpBench's public code makes the residual stream narrower than the compiled model's."""

NARROWER_HEADS = 2
"""Of the other cases, by how much it makes the heads narrower; the stream has room for four of them."""


def shape_of(shape: str, name: str, compiled: CompiledModel) -> Architecture:
    """The shape of a model to train: `"ordinary"`, `"LN"` (with layer norm), or `"narrow"` as in InterpBench."""
    ordinary, config = ordinary_architecture(compiled), compiled.transformer.config
    if shape == "ordinary":
        return ordinary
    if shape == "LN":
        return replace(ordinary, normalization="LN")
    if name in NARROWER_STREAM:
        width = max(2, int(config.d_model // NARROWER_STREAM[name]))
        head = max(1, width // ordinary.n_heads)
    else:
        head = max(1, config.d_head // NARROWER_HEADS)
        width = ordinary.n_heads * head
    return replace(ordinary, d_model=width, d_head=head, d_mlp=4 * width)


SHAPES = "ordinary", "LN", "narrow"
"""The shapes that `shape_of` knows."""
