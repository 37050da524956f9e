"""Where heads look, and which of it matters: relevance, and selectors in the order in which they explain."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.explaining.grammar import Candidate, candidates
from rasplens.compare.explaining.known import Inputs, Known
from rasplens.compare.explaining.sample import Sample

LEAST_RELEVANT = 0.02
"""Heads matter at a position if as many answers change with what they gather there."""

BEAM = 8
"""Selectors that describe attention best: so many are tried by intervention."""

SAME = 0.02
"""Of two selectors of which one keeps no more than this more of the answers, the shorter one goes first."""

FAR = 0.5
"""Bits that a row costs in which a selector selects nothing."""

NEAR = 0.12
"""Bits: of selectors that keep as many answers, those that describe attention no worse than this go on."""

ONE_KEY = 1.3
"""Mean number of keys up to which a selector reads one."""

Weights = Float[np.ndarray, " query"]


@dataclass(frozen=True)
class Group:
    """Heads of one layer that are explained together.

    Attributes:
        layer: Theirs.
        heads: Which.
        relevance: By position, the share of the answers that change with what they gather there.
    """

    layer: int
    heads: tuple[int, ...]
    relevance: tuple[float, ...]

    @property
    def rows(self) -> list[int]:
        """The positions that matter."""
        return [at for at, share in enumerate(self.relevance) if share >= LEAST_RELEVANT]


@dataclass(frozen=True, eq=False)
class Tried:
    """A selector, tried by intervention.

    Attributes:
        selector: The selector.
        bits: Jensen–Shannon divergence of attention from what it selects, the mean over rows that matter.
        kept: The share of the answers that stay with values along all other edges from other inputs.
        counted: How much of the attention on a start token is told by the number of keys: R²; NaN without one.
    """

    selector: Candidate
    bits: float
    kept: float
    counted: float

    @property
    def reads_one(self) -> bool:
        """Whether a row has about one key."""
        return float(self.selector.matrix.sum(axis=2).mean()) <= ONE_KEY


def plans(sample: Sample, until: float = math.inf) -> Iterator[list[Group]]:
    """The heads that matter, in the order of the forward pass: first each alone, then those of a layer together.

    Heads that stand in for each other matter only together.

    Args:
        sample: The model.
        until: On the clock of `time.monotonic`, from when on there is none.
    """
    studied = sample.studied
    alone: list[Group] = []
    together: list[Group] = []
    for layer in studied.attending_layers:
        if time.monotonic() > until:
            return
        heads = studied.heads_of(layer)
        each = [group for head in heads if (group := _group(sample, layer, (head,))).rows]
        alone += each
        everyone = _group(sample, layer, tuple(heads)) if len(heads) > 1 else None
        together += [everyone] if everyone is not None and everyone.rows else each
    yield alone
    if [one.heads for one in together] != [one.heads for one in alone]:
        yield together


def _group(sample: Sample, layer: int, heads: tuple[int, ...]) -> Group:
    relevance = [
        1 - sample.kept([sample.head_elsewhere(layer, heads, position)])
        for position in range(sample.studied.n_pos)
    ]
    return Group(layer, heads, tuple(relevance))


def tried_selectors(
    sample: Sample, inputs: Inputs, group: Group, known: Sequence[Known], is_last: bool
) -> list[Tried]:
    """The selectors that may say where heads look, each tried by intervention, the best first.

    Args:
        sample: The model.
        inputs: The sample, as programs see it.
        group: The heads.
        known: The variables that selectors are made of.
        is_last: Whether no layer behind it attends: then a head may fetch the answer, wherever else it looks.
    """
    attention, rows = sample.attention(group.layer, group.heads), group.rows
    weights = np.array(group.relevance)[rows] / np.array(group.relevance)[rows].sum()
    found = candidates(inputs, known, attention, rows)
    bits = {id(one): _bits(attention[:, rows], one.matrix[:, rows], weights) for one in found}
    by_bits = sorted(found, key=lambda one: bits[id(one)] + 0.02 * one.cost)
    single = [one for one in by_bits if one.matrix[:, rows].sum(axis=2).mean() <= ONE_KEY]
    chosen = [*by_bits[:BEAM], *single[:3]]
    if is_last:
        chosen += sorted(single, key=lambda one: -_fetched(sample, inputs, one, known) + 0.01 * one.cost)[:2]
    left = _left(sample, group)
    if left is not None:
        counted = {id(one): _told_by_number(left[:, rows], one.matrix[:, rows]) for one in found}
        chosen += sorted(found, key=lambda one: -counted[id(one)] + 0.02 * one.cost)[:2]
    tried = [
        Tried(
            one,
            bits[id(one)],
            _kept(sample, group, one),
            np.nan if left is None else counted[id(one)],
        )
        for one in dict.fromkeys(chosen)
    ]
    return _in_order(tried, is_last)


def _in_order(tried: Sequence[Tried], is_last: bool) -> list[Tried]:
    """Those that keep most answers, and describe attention about as well as the best of these; the shorter first.

    One that reads everything keeps all answers, whatever a head does. So this alone says little.
    """
    most = max(one.kept for one in tried)
    good = [one for one in tried if one.kept >= most - SAME]
    near = min(one.bits for one in good) + NEAR
    good = [one for one in good if one.bits <= near]
    good.sort(key=lambda one: 0.05 * one.selector.cost + one.bits)
    least = 0.2 if is_last else 0.75
    single = [one for one in tried if one.reads_one and one.kept >= least]
    single.sort(key=lambda one: -one.kept + 0.02 * one.selector.cost)
    counting = sorted((one for one in tried if one.counted > 0.9), key=lambda one: -one.counted)
    return list(dict.fromkeys([*good[:2], *single[:1], *counting[:1], *good[2:3]]))


def _kept(sample: Sample, group: Group, one: Candidate) -> float:
    others = sample.edges_of(group.heads, ~one.matrix & sample.studied.task.visible)
    return sample.kept_with_values({group.layer: others}, sample.sources[:1])


def _bits(
    attention: Float[np.ndarray, "input row key"], matrix: Bool[np.ndarray, "input row key"], weights: Weights
) -> float:
    """The divergence of attention from uniform attention over what is selected, weighted over rows."""
    n = matrix.sum(axis=2, keepdims=True)
    uniform = matrix / np.maximum(n, 1)
    own = attention / np.maximum(attention.sum(axis=2, keepdims=True), 1e-6)
    middle = (own + uniform) / 2

    def divergence(one: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(one > 0, one * np.log2(one / middle), 0).sum(axis=2)

    both = (divergence(own) + divergence(uniform)) / 2
    return float((np.where(n[:, :, 0] > 0, both, FAR).mean(axis=0) * weights).sum())


def _left(sample: Sample, group: Group) -> Float[np.ndarray, "input query"] | None:
    """The attention that no position of the task gets; None where that is none, or always as much."""
    left = 1 - sample.attention(group.layer, group.heads).sum(axis=2)
    there = left[:, group.rows]
    return left if there.max() > 0.05 and there.std() > 1e-3 else None


def _told_by_number(left: Float[np.ndarray, "input row"], matrix: Bool[np.ndarray, "input row key"]) -> float:
    """How much of the attention that is left the number of selected keys tells: R²."""
    n: Int[np.ndarray, "input row"] = matrix.sum(axis=2)
    means = np.zeros(matrix.shape[2] + 1)
    for number in np.unique(n):
        means[number] = left[n == number].mean()
    return 1 - float(((left - means[n]) ** 2).mean() / left.var())


def _fetched(sample: Sample, inputs: Inputs, one: Candidate, known: Sequence[Known]) -> float:
    """How often the model's answer is a variable's value at the key that is selected: of the best variable."""
    places = list(inputs.task.loss_positions)
    matrix = one.matrix[:, places]
    keys, selects = matrix.argmax(axis=2), matrix.any(axis=2)
    return max(
        float((np.take_along_axis(answer_codes(inputs, variable), keys, axis=1) == sample.answers)[selects].sum())
        / selects.size
        for variable in known
    )


def answer_codes(inputs: Inputs, variable: Known) -> Int[np.ndarray, "input pos"]:
    """The task's codes of a variable's values; -1 for what is no answer."""
    code: Mapping[str, int] = {repr(output): place for place, output in enumerate(inputs.task.outputs)}
    return np.array([code.get(repr(value), -1) for value in variable.values])[variable.codes]
