"""Classes of inputs: the one on which trials fail, while they come out as claimed everywhere else.

A model that uses another mechanism on a fifth of the inputs does as the program says in four trials of five, and an
average hides that. So trials are split by what their inputs have: a token at a position, a token anywhere, two
equal tokens, a length, the program's answer; and by up to `MOST_CONDITIONS` of these together. The worst class is
searched for, as in subgroup discovery (Klösgen 1996, "Explora"). That it is not worse by chance is told by a
permutation test: the same search in shuffled trials.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import xlogy

from rasplens.compare.claims.trials import Trials
from rasplens.compare.pairing.answered import AnsweredInputs
from rasplens.compile.rasp.values import value_key
from rasplens.tasks.task import NOT_ASKED

MOST_CONDITIONS: Final = 3
"""A class is described by at most so many conditions."""

LEAST_IN_CLASS: Final = 5
"""With fewer trials, a class shows nothing."""

PERMUTATIONS: Final = 199
"""Shuffled trials that the search is repeated in. None of them may show as much."""

MOST_PAIRS: Final = 12
"""Of longer inputs no two positions are compared."""


@dataclass(frozen=True, eq=False)
class InputClass:
    """Answers on inputs that meet some conditions.

    Attributes:
        words: The conditions in words.
        share: The share of the answers asked for, on inputs as the task draws them.
        inside: Which trials are of the class.
    """

    words: str
    share: float
    inside: Bool[np.ndarray, " trial"]


def conditions(
    inputs: AnsweredInputs, base: Int[np.ndarray, " trial"], answer: Int[np.ndarray, " trial"]
) -> dict[str, Bool[np.ndarray, " trial"]]:
    """By each condition in words, which answers meet it.

    Args:
        inputs: The inputs.
        base: The input of each answer, by its place.
        answer: Which answer of the input it is.
    """
    return dict(_conditions(inputs, base, answer))


def _conditions(
    inputs: AnsweredInputs, base: Int[np.ndarray, " trial"], answer: Int[np.ndarray, " trial"]
) -> Iterator[tuple[str, Bool[np.ndarray, " trial"]]]:
    task, ids = inputs.task, inputs.ids[base]
    said = inputs.answers[base, answer]
    for position, place in enumerate(task.positions):
        for token, name in enumerate(task.vocab):
            yield f"{_position(place)} is {name!r}", ids[:, position] == token
    for token, name in enumerate(task.vocab):
        yield f"{name!r} occurs", (ids == token).any(axis=1)
    if task.n_ctx <= MOST_PAIRS:
        for first, second in itertools.combinations(range(task.n_ctx), 2):
            both = " and ".join(_position(task.positions[place]) for place in (first, second))
            yield f"{both} are equal", ids[:, first] == ids[:, second]
    if task.padding is not None:
        padding = [value_key(token) for token in task.vocab].index(value_key(task.padding))
        lengths = (ids != padding).sum(axis=1)
        for length in range(1, task.n_ctx + 1):
            yield f"there are {length} tokens", lengths == length
    for code, name in enumerate(task.outputs):
        yield f"the answer is {name!r}", said == code
    for which, place in enumerate(task.loss_positions):
        yield f"the answer is read at {_position(task.positions[place])}", answer == which


def _position(name: str) -> str:
    return f"position {name}" if name.isdecimal() else name


def worst_class(trials: Trials) -> InputClass | None:
    """The class of inputs in which trials fail most clearly more often than elsewhere; None if that may be chance."""
    inputs, right = trials.inputs, trials.right
    if not LEAST_IN_CLASS <= (~right).sum() < len(right):
        return None
    met = conditions(inputs, trials.base, trials.answer)
    names = [words for words, column in met.items() if column.any() and not column.all()]
    if not names:
        return None
    has = np.stack([met[words] for words in names], axis=1)
    found, evidence = _search(has, right)
    rng = np.random.default_rng(0)
    if not found or any(_search(has, rng.permutation(right))[1] >= evidence for _ in range(PERMUTATIONS)):
        return None
    chosen = [names[one] for one in found]
    asked = np.nonzero(inputs.answers[: inputs.n_drawn] != NOT_ASKED)
    everywhere = conditions(inputs, *asked)
    share = np.logical_and.reduce([everywhere[words] for words in chosen]).mean()
    return InputClass(" and ".join(chosen), float(share), has[:, list(found)].all(axis=1))


def _search(
    has: Bool[np.ndarray, "trial condition"], right: Bool[np.ndarray, " trial"]
) -> tuple[tuple[int, ...], float]:
    """The conditions under which trials fail most clearly more often, and how clearly; each is the best to add."""
    inside, found, evidence = np.ones(len(right), dtype=bool), tuple[int, ...](), 0.0
    while len(found) < MOST_CONDITIONS:
        more = has & inside[:, None]
        each = _evidence(more, right)
        best = int(each.argmax())
        if each[best] <= evidence:
            break
        found, evidence, inside = (*found, best), float(each[best]), more[:, best]
    return found, evidence


def _evidence(
    inside: Bool[np.ndarray, "trial condition"], right: Bool[np.ndarray, " trial"]
) -> Float[np.ndarray, " condition"]:
    """By class, the log-likelihood ratio of two rates of failure against one; 0 where failures are rarer inside."""
    n, wrong = len(right), float((~right).sum())
    n_in, wrong_in = inside.sum(axis=0).astype(float), inside[~right].sum(axis=0).astype(float)
    n_out, wrong_out = n - n_in, wrong - wrong_in
    ratio = _likelihood(wrong_in, n_in) + _likelihood(wrong_out, n_out) - _likelihood(wrong, float(n))
    worse = wrong_in * n_out > wrong_out * n_in
    return np.where(worse & (n_in >= LEAST_IN_CLASS), ratio, 0.0)


def _likelihood(wrong: np.ndarray | float, n: np.ndarray | float) -> np.ndarray:
    """The log-likelihood of so many failures at the rate that fits best."""
    n = np.maximum(n, 1e-12)
    return np.asarray(xlogy(wrong, wrong / n) + xlogy(n - wrong, (n - wrong) / n))
