"""Classes of inputs: the one on which trials fail, while they come out as claimed everywhere else.

A model that uses another mechanism on a fifth of the inputs does as the program says in four trials of five. An
average hides that. So trials are split by what their inputs have: a token at a position, a token anywhere, two
equal tokens, a length, the program's answer; and by up to `MOST_CONDITIONS` of these together. The worst class is
searched for, as in subgroup discovery (Klösgen 1996, "Explora"). A permutation test, the same search in shuffled
trials, tells it from chance.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import xlogy

from rasplens.compare.claims.trials.independent import PairsFrom, Trials
from rasplens.compare.pairing.answered import AnsweredInputs
from rasplens.compile.rasp.values import value_key
from rasplens.tasks.task import NOT_ASKED

MOST_CONDITIONS: Final = 3
"""A class is described by at most so many conditions."""

LEAST_IN_CLASS: Final = 3
"""With fewer trials, a class shows nothing."""

LEAST_FAILURES: Final = 6
"""With fewer trials that fail, no class is told from chance."""

PERMUTATIONS: Final = 199
"""Shuffled trials that the search is repeated in. None of them may show as much."""

MORE: Final = 3.0
"""The log-likelihood that one more condition adds beyond that of the best of as many conditions by chance."""

MOST_PAIRS: Final = 12
"""Of longer inputs no two positions are compared."""

SUSPECTED: Final = 0.35
"""A class is suspected if this share of its trials fails, and at least `LEAST_IN_CLASS` do."""

LEAST_SHARE: Final = 0.02
"""A class of fewer of the answers is no mechanism's: on hardly any input trained models do as they like."""

MOST_SUSPECTED: Final = 3
"""So many classes of some trials are suspected."""

NOTHING_ADDED: Final = -1
"""Stands in place of a condition where none makes failures more evident."""

Condition = tuple[str, bool]
"""A condition in words, and whether the source meets it rather than the base."""


@dataclass(frozen=True)
class InputClass:
    """Answers on inputs that meet some conditions; of a pair of inputs, the base or the source.

    Attributes:
        conditions: All of which are met.
        share: The share of the answers asked for, on inputs as the task draws them, that meet them.
    """

    conditions: tuple[Condition, ...]
    share: float

    @property
    def words(self) -> str:
        """The conditions; those of a source are of what the model then sees, and are told from those of a base."""
        of_base = dict.fromkeys(words for words, of_source in self.conditions if not of_source)
        others = dict.fromkeys(words for words, of_source in self.conditions if of_source and words not in of_base)
        return " and ".join([*of_base, *(f"{words} in the source" if of_base else words for words in others)])

    def pairs_from(self, inputs: AnsweredInputs) -> PairsFrom:
        """Which inputs can be the base and the source of a pair of the class."""
        shape = inputs.answers.shape
        rows, answers = (place.ravel() for place in np.indices(shape))
        everywhere = dict(_conditions(inputs, rows, answers))
        base, source = (
            np.logical_and.reduce(
                [everywhere[words] for words, of_source in self.conditions if of_source == which]
                or [np.ones(len(rows), dtype=bool)]
            )
            .reshape(shape)
            .any(axis=1)
            for which in (False, True)
        )
        return PairsFrom(base, source)

    def of(self, trials: Trials) -> Bool[np.ndarray, " trial"]:
        """Which trials are of the class; none where a condition is about a source, and there is none."""
        met = conditions(trials)
        none = np.zeros(len(trials), dtype=bool)
        return np.asarray(np.logical_and.reduce([met.get(one, none) for one in self.conditions]))


def conditions(trials: Trials) -> dict[Condition, Bool[np.ndarray, " trial"]]:
    """Which trials meet each condition."""
    of_base = _conditions(trials.inputs, trials.base, trials.answer)
    found = {(words, False): met for words, met in of_base}
    if trials.source is not None:
        found |= {(words, True): met for words, met in _of_tokens(trials.inputs, trials.source)}
    return found


def _conditions(
    inputs: AnsweredInputs, base: Int[np.ndarray, " trial"], answer: Int[np.ndarray, " trial"]
) -> Iterator[tuple[str, Bool[np.ndarray, " trial"]]]:
    yield from _of_tokens(inputs, base)
    task, said = inputs.task, inputs.answers[base, answer]
    for code, name in enumerate(task.outputs):
        yield f"the answer is {name!r}", said == code
    for which, place in enumerate(task.loss_positions):
        yield f"the answer is read at {_position(task.positions[place])}", answer == which
    if len(task.loss_positions) > 1:
        own = inputs.ids[base, np.asarray(task.loss_positions)[answer]]
        for token, name in enumerate(task.vocab):
            yield f"the token where the answer is read is {name!r}", own == token


def _of_tokens(
    inputs: AnsweredInputs, rows: Int[np.ndarray, " trial"]
) -> Iterator[tuple[str, Bool[np.ndarray, " trial"]]]:
    task, ids = inputs.task, inputs.ids[rows]
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


def _position(name: str) -> str:
    return f"position {name}" if name.isdecimal() else name


def worst_class(*parts: Trials) -> InputClass | None:
    """The class of inputs in which trials fail most clearly more often than elsewhere; None if that may be chance.

    Args:
        parts: Trials on the same inputs, such as those of several claims.
    """
    names, has, right = _table(parts)
    if not names or not LEAST_FAILURES <= (~right).sum() < len(right):
        return None
    rng, ends = np.random.default_rng(0), np.cumsum([len(part) for part in parts])[:-1]
    # The trials of each part in another order.
    shuffles = [
        np.concatenate([rng.permutation(own) for own in np.split(right, ends)]) for _ in range(PERMUTATIONS)
    ]
    added, evidence = _search(has, np.array([right, *shuffles]))
    depth = _depth(evidence[:, 0].tolist(), evidence[:, 1:].max(axis=1), len(names))
    if not depth:
        return None
    chosen = tuple(names[one] for one in added[:depth, 0] if one != NOTHING_ADDED)
    return InputClass(chosen, _share(parts[0].inputs, chosen))


def suspected_classes(*parts: Trials) -> list[InputClass]:
    """Classes in which trials seem to fail, the most evident first. It may be chance: other trials have to tell.

    Args:
        parts: Trials on the same inputs, such as those of several claims.
    """
    names, has, right = _table(parts)
    if not names or not LEAST_IN_CLASS <= (~right).sum() < len(right):
        return []
    found: dict[bytes, tuple[float, tuple[int, ...]]] = {}
    everywhere = np.ones((1, len(right)), dtype=bool)
    for first in np.argsort(-_evidence(has, everywhere, right[None])[0], kind="stable")[:MOST_SUSPECTED]:
        added, clearer = _search(has, right[None], int(first))
        evidence = 0.0
        for depth, more in enumerate(clearer[:, 0].tolist(), start=1):
            chosen = tuple(int(one) for one in added[:depth, 0] if one != NOTHING_ADDED)
            inside = np.asarray(has[:, chosen].all(axis=1))
            failed, same_trials = ~right[inside], inside.tobytes()
            is_clearer = more - evidence > math.log(len(names)) + MORE
            if failed.mean() >= SUSPECTED and failed.sum() >= LEAST_IN_CLASS and is_clearer:
                evidence = more
                if same_trials not in found or len(chosen) < len(found[same_trials][1]):
                    found[same_trials] = more, chosen
    best = sorted(found.values(), key=lambda one: (-one[0], len(one[1])))
    chosen_names = (tuple(names[one] for one in chosen) for _, chosen in best)
    classes = (InputClass(chosen, _share(parts[0].inputs, chosen)) for chosen in chosen_names)
    return [one for one in classes if one.share >= LEAST_SHARE][:MOST_SUSPECTED]


def _table(
    parts: Sequence[Trials],
) -> tuple[list[Condition], Float[np.ndarray, "trial condition"], Bool[np.ndarray, " trial"]]:
    """The conditions that tell some trials from others, which trials meet them (1 or 0), and which are right."""
    right = np.concatenate([np.zeros(0, dtype=bool), *(part.right for part in parts)])
    met = [conditions(part) for part in parts]
    nowhere = [np.zeros(len(part), dtype=bool) for part in parts]  # of a source, where there is none
    every = dict.fromkeys(one for of_part in met for one in of_part)
    each = {
        one: np.concatenate([of_part.get(one, none) for of_part, none in zip(met, nowhere, strict=True)])
        for one in every
    }
    names = [one for one, column in each.items() if LEAST_IN_CLASS <= column.sum() < len(right)]
    has = np.array([each[one] for one in names], dtype=np.float32).reshape(len(names), len(right)).T
    return names, has, right


def _depth(evidence: Sequence[float], by_chance: Float[np.ndarray, " depth"], n_conditions: int) -> int:
    """How many conditions are told from chance: one more has to show more than the best of so many would."""
    told = [more > chance for more, chance in zip(evidence, by_chance, strict=True)]
    if not any(told):
        return 0
    depth = told.index(True) + 1
    while depth < len(evidence) and evidence[depth] - evidence[depth - 1] > math.log(n_conditions) + MORE:
        depth += 1
    return depth


def _share(inputs: AnsweredInputs, chosen: Sequence[Condition]) -> float:
    """The share of the answers, on inputs and sources as they are drawn, that meet conditions."""
    rows, answers = np.nonzero(inputs.answers[: inputs.n_drawn] != NOT_ASKED)
    everywhere = dict(_conditions(inputs, rows, answers))
    sides = ([words for words, of_source in chosen if of_source == side] for side in (False, True))
    met = (np.logical_and.reduce([everywhere[words] for words in side]) for side in sides if side)
    return math.prod(float(side.mean()) for side in met)


def _search(
    has: Float[np.ndarray, "trial condition"], right: Bool[np.ndarray, "order trial"], first: int | None = None
) -> tuple[Int[np.ndarray, "depth order"], Float[np.ndarray, "depth order"]]:
    """The conditions under which trials fail most clearly more often, and how clearly, by order of the trials.

    Each condition is the best to add to those before it; where none adds anything, it is `NOTHING_ADDED`.

    Args:
        has: Which trials meet each condition.
        right: Which trials are right, in each order.
        first: The condition to begin with, in addition to the others.
    """
    orders, inside = np.arange(len(right)), np.ones_like(right)
    added, clearly = [], []
    evidence = np.zeros(len(right))
    if first is not None:
        inside = inside & (has[:, first] > 0)
        evidence = _evidence(np.ones((len(has), 1), dtype=has.dtype), inside, right)[:, 0]
        added, clearly = [np.full(len(right), first)], [evidence]
    while len(added) < MOST_CONDITIONS:
        each = _evidence(has, inside, right)
        best = each.argmax(axis=1)
        is_better = each[orders, best] > evidence
        evidence = np.where(is_better, each[orders, best], evidence)
        inside = inside & np.where(is_better[:, None], has[:, best].T > 0, True)
        added.append(np.where(is_better, best, NOTHING_ADDED))
        clearly.append(evidence)
    return np.array(added), np.array(clearly)


def _evidence(
    has: Float[np.ndarray, "trial condition"],
    inside: Bool[np.ndarray, "order trial"],
    right: Bool[np.ndarray, "order trial"],
) -> Float[np.ndarray, "order condition"]:
    """By class, the log-likelihood ratio of two rates of failure against one; 0 if failures are rarer inside.

    A class is what of `inside` meets a condition. Sums of ones and zeros are exact in single precision.
    """
    n, wrong = right.shape[1], (~right).sum(axis=1, keepdims=True).astype(float)
    n_in = (inside.astype(has.dtype) @ has).astype(float)
    wrong_in = ((inside & ~right).astype(has.dtype) @ has).astype(float)
    n_out, wrong_out = n - n_in, wrong - wrong_in
    ratio = _likelihood(wrong_in, n_in) + _likelihood(wrong_out, n_out) - _likelihood(wrong, float(n))
    worse = wrong_in * n_out > wrong_out * n_in
    return np.where(worse & (n_in >= LEAST_IN_CLASS), ratio, 0.0)


def _likelihood(wrong: np.ndarray | float, n: np.ndarray | float) -> np.ndarray:
    """The log-likelihood of so many failures at the rate that fits best."""
    n = np.maximum(n, 1e-12)
    return np.asarray(xlogy(wrong, wrong / n) + xlogy(n - wrong, (n - wrong) / n))
