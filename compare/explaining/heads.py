"""The heads that matter, and the selectors that may say where they look, the best first."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.grammar import Candidate, Observed, candidates
from rasplens.compare.explaining.kinds import kinds
from rasplens.compare.explaining.known import Inputs, Known
from rasplens.compare.explaining.sample import Sample

LEAST_RELEVANT = 0.02
"""Heads matter at a position if as many answers change with what they gather there."""

BEAM = 8
"""Selectors that describe attention best: so many are tried by intervention."""

SAME = 0.02
"""Of two selectors of which one keeps no more than this more of the answers, the shorter one goes first."""

FAR = 0.5
"""Bits that a row costs in which a selector selects nothing and heads attend, or the other way round."""

UNREAD = 0.05
"""Heads that give a row no more attention than this, beside a start token, select nothing there."""

NEAR = 0.12
"""Bits: of selectors that keep as many answers, those that describe attention no worse than this go on."""

ONE_KEY = 1.3
"""Mean number of keys up to which a selector reads one."""

SHORTER, MUCH_SHORTER = 0.02, 0.05
"""The price of a step of text, in bits or as a share of answers; the second among selectors that keep alike."""

FEW = 2
"""So many that fetch the answer, or count, are tried as well."""

COUNTED = 0.9
"""R² from which heads count: the number of keys tells the attention that is left for a start token."""

KEPT, KEPT_BY_THE_LAST = 0.75, 0.2
"""A selector of one key always goes on if it keeps as many answers; of heads that fetch the answer, fewer do."""

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
    def name(self) -> str:
        """In programs."""
        return f"l{self.layer}h{'_'.join(map(str, self.heads))}"

    @property
    def rows(self) -> list[int]:
        """The positions that matter."""
        return [at for at, share in enumerate(self.relevance) if share >= LEAST_RELEVANT]


@dataclass(frozen=True, eq=False)
class Tried:
    """A selector, beside what some heads do.

    Attributes:
        selector: The selector.
        bits: Jensen–Shannon divergence of attention from what it selects, the mean over rows that matter.
        n_keys: How many keys a row that matters selects, the mean.
        counted: How much of the attention on a start token the number of keys tells: R²; NaN without one.
        fetched: How often the answer is a variable's value at the key that it selects.
        kept: The share of the answers that stay with values along all other edges from other inputs; NaN before it
            was tried.
    """

    selector: Candidate
    bits: float
    n_keys: float
    counted: float
    fetched: float
    kept: float = np.nan

    @property
    def reads_one(self) -> bool:
        """Whether a row has about one key."""
        return self.n_keys <= ONE_KEY


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
    crossed: Crossed, inputs: Inputs, group: Group, known: Sequence[Known], is_last: bool
) -> list[Tried]:
    """The selectors that may say where heads look, each tried by intervention, the best first.

    Args:
        crossed: The model, where what earlier heads leave comes from other inputs.
        inputs: The sample, as programs see it.
        group: The heads.
        known: The variables that selectors are made of.
        is_last: Whether no layer behind it attends: then a head may fetch the answer, wherever else it looks.
    """
    sample = crossed.sample
    attention, rows = sample.attention(group.layer, group.heads), group.rows
    weights = np.array(group.relevance)[rows] / np.array(group.relevance)[rows].sum()
    left = _left(sample, group)
    said = [codes_of_values(inputs, variable)[variable.codes] for variable in known]
    described = []
    of_rows = [list(range(sample.studied.n_pos)), rows] if len(group.heads) == 1 else []
    found = (kinds(crossed, group.layer, group.heads[0], of) for of in of_rows)
    told_apart = [one for one in found if one is not None]
    observed = Observed(group.name, rows, _selected(sample, group, attention), told_apart)
    for one in candidates(inputs, known, observed):
        matrix = one.matrix[:, rows]
        n_keys = float(matrix.sum(axis=2).mean())
        counted = np.nan if left is None else _told_by_number(left[:, rows], matrix)
        fetched = _fetched(sample, one, said) if is_last and n_keys <= ONE_KEY else 0.0
        described.append(Tried(one, _bits(attention[:, rows], matrix, weights), n_keys, counted, fetched))
    return _in_order([replace(one, kept=_kept(sample, group, one.selector)) for one in _first(described)], is_last)


def _selected(
    sample: Sample, group: Group, attention: Float[np.ndarray, "input query key"]
) -> Float[np.ndarray, "input query key"]:
    """How far heads select each key: by its score beside a start token's, else its share of a row's highest.

    Where heads attend to the best of several keys, the others have a high score all the same.
    """
    above = sample.above_start(group.layer, group.heads)
    return attention / np.maximum(attention.max(axis=2, keepdims=True), 1e-9) if above is None else above


def _first(described: Sequence[Tried]) -> list[Tried]:
    """The selectors that are tried: the best to describe attention, to read one key, to fetch, and to count."""

    def best(of: Sequence[Tried], n: int, cost: Callable[[Tried], float]) -> list[Tried]:
        return sorted(of, key=lambda one: cost(one) + SHORTER * one.selector.cost)[:n]

    single = [one for one in described if one.reads_one]
    chosen = [
        *best(described, BEAM, lambda one: one.bits),
        *best(single, FEW + 1, lambda one: one.bits),
        *best([one for one in single if one.fetched], FEW, lambda one: -one.fetched),
        *best([one for one in described if not np.isnan(one.counted)], FEW, lambda one: -one.counted),
    ]
    return list(dict.fromkeys(chosen))


def _in_order(tried: Sequence[Tried], is_last: bool) -> list[Tried]:
    """Those that keep most answers, and describe attention about as well as the best of these; the shorter first.

    One that reads everything keeps all answers, whatever a head does. So this alone says little.
    """
    most = max(one.kept for one in tried)
    good = [one for one in tried if one.kept >= most - SAME]
    near = min(one.bits for one in good) + NEAR
    good = sorted(
        (one for one in good if one.bits <= near), key=lambda one: one.bits + MUCH_SHORTER * one.selector.cost
    )
    least = KEPT_BY_THE_LAST if is_last else KEPT
    single = [one for one in tried if one.reads_one and one.kept >= least]
    single.sort(key=lambda one: -one.kept + SHORTER * one.selector.cost)
    counting = sorted((one for one in tried if one.counted > COUNTED), key=lambda one: -one.counted)
    return list(dict.fromkeys([*good[:2], *single[:1], *counting[:1], *good[2:3]]))


def _kept(sample: Sample, group: Group, one: Candidate) -> float:
    others = sample.edges_of(group.heads, ~one.matrix & sample.studied.task.visible)
    return sample.kept_with_values({group.layer: others}, sample.sources[:1])


def _bits(
    attention: Float[np.ndarray, "input row key"], matrix: Bool[np.ndarray, "input row key"], weights: Weights
) -> float:
    """The divergence of attention from uniform attention over what is selected, weighted over rows.

    Where nothing is selected, a start token has to get all of it; where something is, not all.
    """
    n = matrix.sum(axis=2, keepdims=True)
    uniform = matrix / np.maximum(n, 1)
    own = attention / np.maximum(attention.sum(axis=2, keepdims=True), 1e-6)
    middle = (own + uniform) / 2

    def divergence(one: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(one > 0, one * np.log2(one / middle), 0).sum(axis=2)

    both, total = (divergence(own) + divergence(uniform)) / 2, attention.sum(axis=2)
    bits = np.where(n[:, :, 0] > 0, np.where(total < UNREAD, FAR, both), FAR * total)
    return float((bits.mean(axis=0) * weights).sum())


def _left(sample: Sample, group: Group) -> Float[np.ndarray, "input query"] | None:
    """The attention that no position of the task gets; None where that is none, or always as much."""
    left = 1 - sample.attention(group.layer, group.heads).sum(axis=2)
    there = left[:, group.rows]
    return left if there.max() > 0.05 and there.std() > 1e-3 else None


def _told_by_number(left: Float[np.ndarray, "input row"], matrix: Bool[np.ndarray, "input row key"]) -> float:
    """Return R² of the attention that is left, given the number of selected keys."""
    n: Int[np.ndarray, "input row"] = matrix.sum(axis=2)
    means = np.zeros(matrix.shape[2] + 1)
    for number in np.unique(n):
        means[number] = left[n == number].mean()
    return 1 - float(((left - means[n]) ** 2).mean() / left.var())


def _fetched(sample: Sample, one: Candidate, said: Sequence[Int[np.ndarray, "input pos"]]) -> float:
    """Return the share of the answers that are the value at the selected key, of the best of some variables."""
    places = list(sample.studied.task.loss_positions)
    matrix = one.matrix[:, places]
    keys, selects = matrix.argmax(axis=2), matrix.any(axis=2)
    fetched = (np.take_along_axis(codes, keys, axis=1) == sample.answers for codes in said)
    return max(float(right[selects].sum()) / selects.size for right in fetched)


def codes_of_values(inputs: Inputs, variable: Known) -> Int[np.ndarray, " value"]:
    """The task's codes of a variable's values; -1 for what is no answer."""
    code: Mapping[str, int] = {repr(output): place for place, output in enumerate(inputs.task.outputs)}
    return np.array([code.get(repr(value), -1) for value in variable.values])
