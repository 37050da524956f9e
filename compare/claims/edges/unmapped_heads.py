"""Heads that attend like no compiled head, and what they decide.

Such a head may still do the program's work: it gathers values along the program's edges, among others. Or it is
part of another mechanism. So all that these heads gather is taken from another input; and once more, only the
values along the program's edges, and along a position's own, which repeats its residual stream. A model that uses
the program alone answers alike both times.

Source: the test of unmapped variables in the Causal Abstraction Evaluation study (arXiv 2607.00267).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rasplens.compare.claims.edges.attended import alike_rows, is_used
from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched
from rasplens.compare.claims.edges.head_interchange import interchanged
from rasplens.compare.claims.edges.program_edges import program_edges
from rasplens.compare.claims.trials.independent import PairsFrom, Trials, no_trials, one_of_each
from rasplens.compare.claims.trials.stopping import looks, until_decided
from rasplens.compare.evidence.attention.active_heads import active_heads
from rasplens.compare.pairing.inputs import balanced
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head
from rasplens.model import random_streams
from rasplens.tasks.task import NOT_ASKED

DRAWN = 4
"""Pairs of inputs that are drawn for each that is wanted: two inputs may have the same answers."""

MAPPED = 0.5
"""A head attends like a compiled head if this share of its rows is alike."""


DECIDED = 0.8
"""The share of the answers that the program has to decide where other heads are of use.

In a tie of two programs the other's heads may decide just 18 % of the answers, and no other claim may tell.
In most naturally trained models that use the program, other heads decide up to 13 %; those with more stay open.
"""


@dataclass(frozen=True, eq=False)
class UnmappedHeads:
    """The heads that attend like no compiled head, tested together.

    Attributes:
        heads: These, of the learned model.
        trials: Whether they decide only by what they gather along the program's edges.
        control: The share of answers that are alike if each is compared with another pair's.
        again: From the inputs that pairs may be of, other trials.
    """

    heads: Sequence[Head]
    trials: Trials
    control: float
    again: Callable[[PairsFrom], Trials]


def unmapped(pairing: Pairing, seed: int) -> UnmappedHeads | None:
    """The unmapped heads of a learned model, tested.

    Args:
        pairing: The models, on inputs.
        seed: Of the pairs of inputs.

    Returns:
        None where there are none; and where the program is compared as a part of the model, which has other heads
        beside it.
    """
    heads = [] if pairing.as_part else unmapped_heads(pairing)
    if not heads:
        return None
    rng, config = random_streams.rng(seed, "unmapped heads"), pairing.config
    asked = list[tuple[Trials, float]]()

    def ask(n: int) -> list[Trials]:
        asked.append(decide_by_the_program(pairing, heads, rng, n))
        return [asked[-1][0]]

    def again(among: PairsFrom) -> Trials:
        return decide_by_the_program(pairing, heads, rng, config.questions, among)[0]

    (trials,) = until_decided(ask, looks(config.questions), config.comparisons, DECIDED)
    return UnmappedHeads(heads, trials, asked[0][1], again)


def unmapped_heads(pairing: Pairing) -> list[Head]:
    """The learned heads that are of any use, and attend like no compiled head with active query rows."""
    compiled, studied = active_heads(pairing), pairing.learned
    unlike = [
        head for head in studied.heads if all(alike_rows(pairing, one, (head,)) < MAPPED for one in compiled)
    ]
    return [head for head in unlike if is_used(studied, head)]


def decide_by_the_program(
    pairing: Pairing, heads: Sequence[Head], rng: np.random.Generator, n: int, among: PairsFrom | None = None
) -> tuple[Trials, float]:
    """Whether what heads decide is what they gather along the program's edges, or a position's own.

    Args:
        pairing: The models, on inputs.
        heads: Of the learned model, taken together.
        rng: Draws pairs of inputs, and which answer of a pair counts.
        n: How many trials are sought.
        among: The inputs that pairs are of; by default all.

    Returns:
        A trial for each pair of inputs with different answers: whether the answer is the same when the heads are
        taken from the source, and when only their values along these edges are. And the control: the share of the
        answers that are the same if each is compared with another pair's.
    """
    studied, program = pairing.learned, pairing.compiled.program
    read = program_edges(program, pairing.task, pairing.ids)
    inputs = np.flatnonzero(pairing.agrees & read.defined)
    own = studied.answers()
    bases, sources = (inputs, inputs) if among is None else (inputs[which[inputs]] for which in among)
    if not len(bases) or not len(sources):
        return no_trials(pairing.answered), float("nan")
    base, source = (some[balanced(pairing.balance, some, DRAWN * n, rng)] for some in (bases, sources))
    at_risk = (own[base] != own[source]) & (own[base] != NOT_ASKED)
    rows = np.flatnonzero(at_risk.any(axis=1))[:n]
    base, source, at_risk = base[rows], source[rows], at_risk[rows]
    if not len(base):
        return no_trials(pairing.answered), float("nan")
    edges = (read.carrying | read.counted)[base] | np.eye(pairing.task.n_ctx, dtype=bool)
    wholly = interchanged(studied, heads, base, source)
    along, _ = patched(studied, EdgePatch(base, source, edges, "values"), heads=heads)
    trials = one_of_each(pairing.answered, base, wholly == along, at_risk, rng, source)
    others = (wholly == along[rng.permutation(len(base))])[at_risk]
    return trials, float(others.mean()) if others.size else float("nan")
