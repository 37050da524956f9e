"""The programs of InterpBench, against what their descriptions say in plain Python."""

import importlib
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from rasplens.learned.siit.circuit import circuit_of

VOWELS = "aeiouAEIOU"


def trend(word):
    said = ["increasing" if a < b else "decreasing" if a > b else "constant" for a, b in pairwise(word)]
    return [*said, None]


def frequency(word):
    shares = [Fraction(word.count(token), len(word)) for token in word]
    return ["frequent" if s > Fraction(1, 2) else "common" if s > Fraction(1, 4) else "rare" for s in shares]


def alternates(word):
    inner = [word[i] not in (word[i - 1], word[i + 1]) for i in range(1, len(word) - 1)]
    return [None, *inner, None]


def capital(token):
    return "".join(letter.upper() if i % 2 == 0 else letter.lower() for i, letter in enumerate(token))


def ratio(token):
    vowels = len([letter for letter in token if letter in VOWELS])
    return vowels / (len(token) - vowels)


EXPECTED = {
    "case_3": lambda word: [word[: i + 1].count("x") / (i + 1) for i in range(len(word))],
    "case_11": lambda word: [len(token) for token in word],
    "case_13": trend,
    "case_18": frequency,
    "case_19": lambda word: [None, *(b if a != b else None for a, b in pairwise(word))],
    "case_20": lambda word: ["spam" if token in ("offer", "click", "now") else "not spam" for token in word],
    "case_21": lambda word: [token if token not in word[:i] else None for i, token in enumerate(word)],
    "case_26": lambda word: [token * (i + 1) for i, token in enumerate(word)],
    "case_29": lambda word: [token[:3] for token in word],
    "case_33": lambda word: [len(token) % 2 == 0 for token in word],
    "case_34": lambda word: [ratio(token) for token in word],
    "case_35": lambda word: [capital(token) for token in word],
    "case_36": lambda word: [{"😊": "positive", "😢": "negative", "📘": "neutral"}[token] for token in word],
    "case_37": lambda word: ["".join(reversed(token)) for token in word],
    "case_38": alternates,
}
"""By case, from a sequence of tokens to the answers."""


@pytest.fixture
def sets():
    return importlib.import_module("lab.program_sets")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_program_does_what_its_description_says(sets, name):
    task, compiled = sets.compiled_task("interpbench", name)
    words, codes = task.sequences(task.held_out[:60]), task.target(task.held_out[:60])
    for word, row in zip(words, codes, strict=True):
        said = [task.outputs[code] for code in row]
        wanted = EXPECTED[name](word)
        assert [s if isinstance(s, str | None) else pytest.approx(s) for s in said] == wanted
    assert circuit_of(compiled)  # each has a node: maps of tokens have an MLP, as Tracr's have
    assert len(np.unique(codes)) > 1


def test_all_cases_are_checked(sets):
    assert set(EXPECTED) == set(sets.INTERPBENCH)


def test_programs_of_the_library_are_longer_than_in_the_catalogue(sets):
    task, _ = sets.compiled_task("library", "sort")
    assert task.n_ctx == 6


@pytest.mark.parametrize(("case", "width", "head"), [("case_21", 48, 12), ("case_19", 28, 7)])
def test_narrow_models_have_interpbench_s_widths(sets, case, width, head):
    _, compiled = sets.compiled_task("interpbench", case)
    ordinary, normalized, narrow = (sets.shape_of(shape, case, compiled) for shape in sets.SHAPES)
    assert (normalized.d_model, normalized.normalization, ordinary.normalization) == (64, "LN", "none")
    assert (ordinary.d_model, ordinary.n_heads) == (64, 4)
    assert (narrow.d_model, narrow.n_heads, narrow.d_head, narrow.d_mlp) == (width, 4, head, 4 * width)
    assert (narrow.n_layers, narrow.activation) == (ordinary.n_layers, ordinary.activation)
