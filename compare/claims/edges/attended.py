"""Whether heads attend where a selector selects: what is looked at where no intervention tells.

A head that gathers the same value everywhere, or counts, says only whether, or how much, its selector selects.
Where else it attends changes no answer. Then attention itself is what is left to look at. It says where a model
looks, though not that this matters: so what such heads gather has to decide answers as well, see
`head_interchange`. Even so it can leave a claim open and never refute one: other heads may do the same work.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float

from rasplens.compare.claims.edges.compiled_heads import heads_along
from rasplens.compare.claims.edges.head_interchange import moves_answers
from rasplens.compare.claims.edges.program_edges import Aggregates, between_positions
from rasplens.compare.claims.trials.independent import PairsFrom, Trials
from rasplens.compare.claims.trials.stopping import FIRST, looks, until_decided
from rasplens.compare.config import CompareConfig
from rasplens.compare.evidence.attention.active_heads import SELECTS, ActiveHead, active_heads
from rasplens.compare.evidence.attention.heads import similarity
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import BATCH, Head, StudiedModel
from rasplens.model import random_streams
from rasplens.model.hook_points import act_name

ALIKE = 0.9
"""Two rows of attention are alike if 1 minus their Jensen-Shannon divergence in bits is at least this."""

NO_LESS = 0.02
"""Heads are no less alike if this share of rows fewer is."""

UNUSED = 1e-4
"""A head is of no use if what it gathers changes logits by no more than this share of their range."""

AT_FIRST = 32
"""Inputs on which it is asked at a time whether it does."""

MOST_TIMES = 10.0
"""A head that counts may give what is beside the sequence a share of its own, up to so many times that of one
position, or down to one over it: with more, hardly any is left for the positions; with less, it is the leak of a
head that looks."""


@dataclass(frozen=True, eq=False)
class Attended:
    """How one or several heads of a layer attend, against a selector of the program.

    Attributes:
        compiled: The compiled head.
        variable: The s-op that it computes.
        gathers: The aggregates along whose edges it attends.
        heads: Of the learned model, those that attend most like it; their mean is compared.
        moves: Where the compiled head, taken from another input, changes an answer: whether these heads do so, or
            others that attend no less like it.
        again: The same of other pairs, of such inputs.
        rows: The query rows on which the compiled head attends to another position.
        alike: On which of them the attention is alike.
        similarity: The mean over them.
        uniform: The share of them on which attending to everything alike would be.
    """

    compiled: Head
    variable: str
    gathers: tuple[Aggregates, ...]
    heads: tuple[Head, ...]
    moves: Trials
    again: Callable[[PairsFrom], Trials]
    rows: Bool[np.ndarray, "input query"]
    alike: Bool[np.ndarray, "input query"]
    similarity: float
    uniform: float


def attended(study: Study, seed: int) -> Iterator[Attended]:
    """For every compiled head with active query rows, the learned heads that attend most like it.

    What a position gives to itself does not count: it repeats the residual stream. What other positions than the
    task's take, such as a BOS, does: by that a head that counts differs from one that looks. How large a share
    that is, against one position's, is the model's own.
    """
    pairing, fitting, rng = study.scored, study.fitting, random_streams.rng(seed, "heads that attend alike")
    config = study.config
    groups, along = _groups(pairing.learned), heads_along(pairing)
    on_fitting = {one.head: one for one in active_heads(fitting)}
    for one in selecting(pairing):
        rows, _ = _selecting(pairing, one)
        chosen_on = (fitting, on_fitting[one.head]) if one.head in on_fitting else (pairing, one)
        heads, share = _most_like(*chosen_on, groups)
        together = _deciding(*chosen_on, _no_less_alike(*chosen_on, heads, groups), rng)
        found = _likeness(pairing, one, heads, share)
        ask = partial(moves_answers, pairing, one.head, together, rng)
        yield Attended(
            compiled=one.head,
            variable=one.variable,
            gathers=along[one.head],
            heads=heads,
            rows=rows,
            alike=_placed(found, rows),
            similarity=float(found.mean()),
            uniform=float((_likeness_of_uniform(pairing, one) >= ALIKE).mean()),
            moves=_until_decided(ask, config),
            again=partial(ask, config.questions),
        )


def selecting(pairing: Pairing) -> Iterator[ActiveHead]:
    """The compiled heads that attend to another position than their own somewhere, and are of use."""
    for one in active_heads(pairing):
        if _selecting(pairing, one)[0].any() and is_used(pairing.reference, one.head):
            yield one


def _deciding(
    pairing: Pairing, one: ActiveHead, alike: Sequence[Head], rng: np.random.Generator
) -> Sequence[Head]:
    """Of heads that attend alike, all together, or the one that decides more answers as the compiled head does.

    Copies share its work. But others may attend like it for something else, and undo what it changes.
    """
    if len(alike) < 2:
        return alike

    def decided(heads: Sequence[Head]) -> float:
        right = moves_answers(pairing, one.head, heads, rng, FIRST).right
        return float(right.mean()) if len(right) else 0.0

    return max((alike, *([head] for head in alike)), key=decided)


def _until_decided(ask: Callable[[int], Trials], config: CompareConfig) -> Trials:
    return until_decided(lambda n: [ask(n)], looks(config.questions), config.comparisons)[0]


def _most_like(
    pairing: Pairing, one: ActiveHead, groups: Sequence[tuple[Head, ...]]
) -> tuple[tuple[Head, ...], float]:
    """The heads that attend most like a compiled head, and their share of the rest; none where none is of use."""
    if not groups:
        return (), 1.0
    shares = [_share_of_rest(pairing, one, heads) for heads in groups]
    scores = [_likeness(pairing, one, heads, share).sum() for heads, share in zip(groups, shares, strict=True)]
    best = int(np.argmax(scores))
    return groups[best], shares[best]


def _no_less_alike(
    pairing: Pairing, one: ActiveHead, best: tuple[Head, ...], groups: Sequence[tuple[Head, ...]]
) -> list[Head]:
    """Heads, and all those of any layer that attend no less like a compiled head: copies share its work."""
    if not best:
        return []
    least = alike_rows(pairing, one, best) - NO_LESS
    alone = [heads for heads in groups if len(heads) == 1 and alike_rows(pairing, one, heads) >= least]
    return sorted({*best, *itertools.chain(*alone)})


def alike_rows(pairing: Pairing, one: ActiveHead, heads: tuple[Head, ...]) -> float:
    """The share of a compiled head's query rows on which heads of a layer attend like it; 0 where it has none."""
    found = _likeness(pairing, one, heads, _share_of_rest(pairing, one, heads)) >= ALIKE
    return float(found.mean()) if len(found) else 0.0


def _groups(studied: StudiedModel) -> list[tuple[Head, ...]]:
    """Heads of one layer that may share a job: each alone, every two, and all that are of any use."""
    found: list[tuple[Head, ...]] = []
    for layer in range(studied.n_layers):
        heads = [(layer, head) for head in studied.heads_of(layer) if is_used(studied, (layer, head))]
        sizes = sorted({size for size in (1, 2, len(heads)) if 0 < size <= len(heads)})
        found += [group for size in sizes for group in itertools.combinations(heads, size)]
    return found


def is_used(studied: StudiedModel, head: Head) -> bool:
    """Whether logits change at all, on one batch of inputs, when a head gathers what it does on others."""
    layer, index = head

    def take(gathered: torch.Tensor, hook: object) -> torch.Tensor:
        gathered = gathered.clone()
        gathered[:, :, index] = gathered[:, :, index].roll(1, dims=0)
        return gathered

    own = studied.first(BATCH).clean_logits
    # What a few inputs show needs no others.
    parts = (slice(start, start + AT_FIRST) for start in range(0, len(own), AT_FIRST))
    changes = (np.abs(studied.logits([(act_name("z", layer), take)], part) - own[part]).max() for part in parts)
    return any(change > UNUSED * np.ptp(own) for change in changes)


def _likeness(
    pairing: Pairing, one: ActiveHead, heads: tuple[Head, ...], share: float
) -> Float[np.ndarray, " row"]:
    """How like a compiled head others attend, on the rows on which it attends elsewhere than to itself."""
    read, first = _selecting(pairing, one)
    if not heads:
        return np.zeros(len(first))
    weights = np.append(np.ones(pairing.task.n_ctx), 1 / share)
    return _similarities(first, _elsewhere(pairing, one, pairing.learned, heads)[read] * weights)


def _likeness_of_uniform(pairing: Pairing, one: ActiveHead) -> Float[np.ndarray, " row"]:
    """Return the similarity of a compiled head to uniform attention, where it attends elsewhere than to itself."""
    read, first = _selecting(pairing, one)
    uniform = np.pad(between_positions(pairing.task), ((0, 0), (0, 1))).astype(np.float64)
    return _similarities(first, np.broadcast_to(uniform, (*read.shape, uniform.shape[-1]))[read])


def _similarities(
    first: Float[np.ndarray, "row key_and_rest"], second: Float[np.ndarray, "row key_and_rest"]
) -> Float[np.ndarray, " row"]:
    total = second.sum(axis=-1, keepdims=True)
    shares = second / np.where(total > SELECTS, total, 1)
    found = similarity(first / first.sum(axis=-1, keepdims=True), shares)
    return np.where(total[:, 0] > SELECTS, found, 0.0)


def _selecting(
    pairing: Pairing, one: ActiveHead
) -> tuple[Bool[np.ndarray, "input query"], Float[np.ndarray, "row key_and_rest"]]:
    """The query rows on which a compiled head attends elsewhere than to itself, and its attention there."""
    attention = _elsewhere(pairing, one, pairing.reference, (one.head,))
    read = one.active_rows & (attention[..., :-1].sum(axis=-1) > SELECTS)
    return read, attention[read]


def _share_of_rest(pairing: Pairing, one: ActiveHead, heads: tuple[Head, ...]) -> float:
    """How many times as much heads give to the rest, against one position, as a compiled head that counts."""
    read, first = _selecting(pairing, one)
    second = _elsewhere(pairing, one, pairing.learned, heads)[read]
    counted = (first[:, -1] > SELECTS) & (second[:, :-1].sum(axis=-1) > SELECTS)
    if not counted.any():
        return 1.0
    ours, theirs = (rows[counted, -1] / rows[counted, :-1].sum(axis=-1) for rows in (first, second))
    return float(np.clip(np.median(theirs / ours), 1 / MOST_TIMES, MOST_TIMES))


def _elsewhere(
    pairing: Pairing, one: ActiveHead, studied: StudiedModel, heads: tuple[Head, ...]
) -> Float[np.ndarray, "input query key_and_rest"]:
    """The mean attention of heads of a layer to each other position, and to the rest.

    The rest is what positions take that the task does not know. To a compiled head that counts, and so leaves it
    a share of its own, the own position and those that it never selects are rest as well.
    """
    pattern = studied.pattern(heads[0][0])[:, [head for _, head in heads]].mean(axis=1, dtype=np.float64)
    rest = np.clip(1 - pattern.sum(axis=-1, keepdims=True), 0, 1)
    unread = np.broadcast_to(np.eye(pattern.shape[-1], dtype=bool), pattern.shape)
    if one.counts:
        unread = unread | ~(one.pattern > SELECTS).any(axis=0)
        rest = rest + (pattern * unread).sum(axis=-1, keepdims=True)
    return np.concatenate([np.where(unread, 0, pattern), rest], axis=-1)


def _placed(
    found: Float[np.ndarray, " row"], rows: Bool[np.ndarray, "input query"]
) -> Bool[np.ndarray, "input query"]:
    """Which rows are alike, where they are."""
    alike = np.zeros(rows.shape, dtype=bool)
    alike[rows] = found >= ALIKE
    return alike
