"""The selectors that may say where heads look, the best first."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.heads import Group
from rasplens.compare.explaining.known import Inputs, Known
from rasplens.compare.explaining.sample import Sample
from rasplens.compare.explaining.selectors.attended import Attended
from rasplens.compare.explaining.selectors.crossed_attention import CrossedAttention
from rasplens.compare.explaining.selectors.grammar import Candidate, Select, best_of, selects, unlike
from rasplens.compare.explaining.selectors.kinds import kinds
from rasplens.compare.explaining.selectors.split import split
from rasplens.compare.explaining.selectors.tables import Observed, OwnEdges, told_kinds

BEAM = 8
"""Selectors that describe attention best: so many are tried by intervention."""

MOST_CROSSED = 120
"""So many, or a few more, are held against attention where what earlier heads leave comes from other inputs."""

SAME = 0.02
"""Of two selectors of which one keeps no more than this more of the answers, the shorter one goes first."""

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


@dataclass(frozen=True, eq=False)
class Tried:
    """A selector, beside what some heads do.

    Attributes:
        selector: The selector.
        bits: Jensen–Shannon divergence of attention from what it selects, the mean over rows that matter: of that
            on the sample and that on the sample crossed the larger, where it was asked for.
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
    of_rows = [list(range(sample.studied.n_pos)), rows] if len(group.heads) == 1 else []
    found = (kinds(crossed, group.layer, group.heads[0], of) for of in of_rows)
    told_apart = [one for one in found if one is not None]
    own = sample.selected_at_own(group.layer, group.heads, sample.sources[0])
    own_edges = None if own is None else OwnEdges(own, sample.sources[0])
    observed = Observed(group.name, rows, _selected(sample, group, attention), own_edges, told_apart)
    seen = _Seen(
        Attended(rows, attention[:, rows], weights),
        _left(sample, group),
        _fetchable(sample, inputs, known if is_last else []),
        list(inputs.task.loss_positions),
    )
    told = told_kinds(inputs, known, observed)
    whole = selects(inputs, known, observed, told)
    tried = [seen.tried(one) for one in whole]
    others = [best for one in seen.may_be_tried(whole, tried) for best in best_of(known, one)]
    if told is not None:
        others += split(inputs, group.name, told.key, told.query, told.selected)
    tried += [seen.tried(one) for one in unlike([*whole, *others], rows) if not isinstance(one, Select)]
    elsewhere = CrossedAttention(crossed, inputs, group, seen.attended) if crossed.made else None
    first = _first(tried) if elsewhere is None else _first_crossed(tried, elsewhere)
    return _in_order([replace(one, kept=_kept(sample, group, one.selector)) for one in first], is_last)


def _selected(
    sample: Sample, group: Group, attention: Float[np.ndarray, "input query key"]
) -> Float[np.ndarray, "input query key"]:
    """How far heads select each key: by its score beside a start token's, else its share of a row's highest.

    Where heads attend to the best of several keys, the others have a high score all the same.
    """
    above = sample.above_start(group.layer, group.heads)
    return attention / np.maximum(attention.max(axis=2, keepdims=True), 1e-9) if above is None else above


@dataclass(frozen=True, eq=False)
class _Seen:
    """What heads do, to put selectors beside it.

    Attributes:
        attended: Where they attend.
        left: Attention that no position of the task gets; None if that tells nothing.
        fetchable: By variable, whether its value at a key is the answer; none of heads that later ones read.
        answered: The queries of answers.
    """

    attended: Attended
    left: Float[np.ndarray, "input row"] | None
    fetchable: Bool[np.ndarray, "variable input answer key"]
    answered: list[int]

    def tried(self, one: Candidate) -> Tried:
        """A selector beside what heads do, without interventions."""
        matrix = one.matrix[:, self.attended.rows]
        n_keys = float(matrix.sum(axis=2).mean())
        counted = np.nan if self.left is None else _told_by_number(self.left, matrix)
        fetched = self._fetched(one) if n_keys <= ONE_KEY else 0.0
        return Tried(one, self.attended.bits(one.matrix), n_keys, counted, fetched)

    def _fetched(self, one: Candidate) -> float:
        """The share of the answers that are the value at the first selected key, of the best of the variables."""
        matrix = one.matrix[:, self.answered]
        first = np.take_along_axis(self.fetchable, matrix.argmax(axis=2)[None, :, :, None], axis=3)[..., 0]
        return float((first & matrix.any(axis=2)).mean(axis=(1, 2)).max(initial=0))

    def _most_fetched(self, one: Candidate) -> float:
        """The most that a selector of some of the keys can fetch."""
        return float((self.fetchable & one.matrix[:, self.answered]).any(axis=3).mean(axis=(1, 2)).max(initial=0))

    def may_be_tried(self, whole: Sequence[Select], tried: Sequence[Tried]) -> Iterator[Select]:
        """The selectors of which the best keys may be a selector that is tried by intervention."""
        single = [one for one in tried if one.reads_one]
        bits = max(_last_of(_by_bits(tried, BEAM), BEAM), _last_of(_by_bits(single, FEW + 1), FEW + 1))
        fetched = _last_of(_by_fetched(single), FEW)
        for one in whole:
            longer = SHORTER * one.cost
            may_fetch = (most := self._most_fetched(one)) and longer - most <= fetched
            if may_fetch or self.attended.least_bits(one.matrix) + longer <= bits:
                yield one


def _first_crossed(tried: Sequence[Tried], elsewhere: CrossedAttention) -> list[Tried]:
    """The first selectors, which have to describe attention also where it is crossed."""
    left, asked, first = list(tried), list[Tried](), _first(tried)
    while new := [one for one in first if one in left]:
        asked += [replace(one, bits=max(one.bits, elsewhere.bits(one.selector))) for one in new]
        left = [one for one in left if one not in new] if len(asked) < MOST_CROSSED else []
        first = _first([*asked, *left])
    return first


def _first(tried: Sequence[Tried]) -> list[Tried]:
    """The selectors that are tried: the best to describe attention, to read one key, to fetch, and to count."""
    single = [one for one in tried if one.reads_one]
    chosen = [*_by_bits(tried, BEAM), *_by_bits(single, FEW + 1), *_by_fetched(single), *_by_counted(tried, FEW)]
    return list(dict.fromkeys(one for _, one in chosen))


Priced = tuple[float, Tried]
"""A selector and what it is sorted by."""


def _by_bits(tried: Sequence[Tried], n: int) -> list[Priced]:
    return _lowest([(one.bits + SHORTER * one.selector.cost, one) for one in tried], n)


def _by_counted(tried: Sequence[Tried], n: int) -> list[Priced]:
    return _lowest(
        [(SHORTER * one.selector.cost - one.counted, one) for one in tried if not np.isnan(one.counted)], n
    )


def _by_fetched(tried: Sequence[Tried]) -> list[Priced]:
    return _lowest([(SHORTER * one.selector.cost - one.fetched, one) for one in tried if one.fetched], FEW)


def _lowest(priced: Sequence[Priced], n: int) -> list[Priced]:
    return sorted(priced, key=lambda one: one[0])[:n]


def _last_of(lowest: Sequence[Priced], n: int) -> float:
    """The price that a further one has to beat; infinite if there are fewer than `n`."""
    return lowest[-1][0] if len(lowest) == n else math.inf


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


def _left(sample: Sample, group: Group) -> Float[np.ndarray, "input row"] | None:
    """The attention that no position of the task gets; None where that is none, or always as much."""
    left = 1 - sample.attention(group.layer, group.heads).sum(axis=2)[:, group.rows]
    return left if left.max() > 0.05 and left.std() > 1e-3 else None


def _told_by_number(left: Float[np.ndarray, "input row"], matrix: Bool[np.ndarray, "input row key"]) -> float:
    """Return R² of the attention that is left, given the number of selected keys."""
    n: Int[np.ndarray, "input row"] = matrix.sum(axis=2)
    counts = np.bincount(n.ravel())
    means = np.bincount(n.ravel(), left.ravel()) / np.maximum(counts, 1)
    return 1 - float(((left - means[n]) ** 2).mean() / left.var())


def _fetchable(
    sample: Sample, inputs: Inputs, known: Sequence[Known]
) -> Bool[np.ndarray, "variable input answer key"]:
    """By variable, whether its value at a key is the answer."""
    said = np.empty((len(known), *inputs.ids.shape), dtype=np.int64)
    for place, one in enumerate(known):
        said[place] = inputs.answers_of(one.values)[one.codes]
    return np.asarray(said[:, :, None, :] == sample.answers[None, :, :, None])
