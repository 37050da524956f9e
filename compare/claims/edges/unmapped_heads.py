"""Heads that attend like no compiled head, and what they decide.

Such a head may still do the program's work: it gathers values along the program's edges, among others. Or it is
part of another mechanism. So all that these heads gather is taken from another input; and once more, only the
values along the program's edges. A model that uses the program alone answers alike both times.

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
from rasplens.compare.evidence.attention.active_heads import active_heads
from rasplens.compare.pairing.inputs import balanced
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head
from rasplens.model import random_streams
from rasplens.tasks.task import NOT_ASKED

MAPPED = 0.5
"""A head attends like a compiled head if this share of its rows is alike."""


@dataclass(frozen=True, eq=False)
class UnmappedHeads:
    """The heads that attend like no compiled head, tested together.

    Attributes:
        heads: These, of the learned model.
        trials: Whether they decide only by what they gather along the program's edges.
        control: How many answers are alike if each is compared with that of another pair.
        again: The same of other pairs, of such inputs.
    """

    heads: Sequence[Head]
    trials: Trials
    control: float
    again: Callable[[PairsFrom], Trials]


def unmapped(pairing: Pairing, seed: int, can_be_patched: bool = True) -> UnmappedHeads:
    """The unmapped heads of a learned model, tested.

    Args:
        pairing: The models, on inputs. A part of a model has other heads beside it: none of them is tested.
        seed: Of the pairs of inputs.
        can_be_patched: Whether the model's attention edges can be patched; else no head is tested.
    """
    is_tested = can_be_patched and not pairing.as_part
    heads = unmapped_heads(pairing) if is_tested else []
    rng = random_streams.rng(seed, "unmapped heads")

    def again(among: PairsFrom | None = None) -> Trials:
        return decide_by_the_program(pairing, heads, rng, among)[0]

    if not heads:
        return UnmappedHeads([], no_trials(pairing.answered), float("nan"), again)
    return UnmappedHeads(heads, *decide_by_the_program(pairing, heads, rng), again)


def unmapped_heads(pairing: Pairing) -> list[Head]:
    """The learned heads that are of any use, and attend like no compiled head with active query rows."""
    compiled, studied = active_heads(pairing), pairing.learned
    unlike = [
        head for head in studied.heads if all(alike_rows(pairing, one, (head,)) < MAPPED for one in compiled)
    ]
    return [head for head in unlike if is_used(studied, head)]


def decide_by_the_program(
    pairing: Pairing, heads: Sequence[Head], rng: np.random.Generator, among: PairsFrom | None = None
) -> tuple[Trials, float]:
    """Whether what heads decide is what they gather along the program's edges.

    Args:
        pairing: The models, on inputs.
        heads: Of the learned model, taken together.
        rng: Draws pairs of inputs, and which answer of a pair counts.
        among: The inputs that pairs are of; by default all.

    Returns:
        A trial for each pair of inputs with different answers: whether the answer is the same when the heads are
        taken from the source, and when only their values along the program's edges are. And how many of these
        answers are the same as those of another pair.
    """
    studied, inputs = pairing.learned, np.flatnonzero(pairing.agrees)
    own, n = studied.answers(), pairing.config.questions
    bases, sources = (inputs, inputs) if among is None else (inputs[which[inputs]] for which in among)
    if not min(len(bases), len(sources)):
        return no_trials(pairing.answered), float("nan")
    base, source = (some[balanced(pairing.balance, some, n, rng)] for some in (bases, sources))
    read = program_edges(pairing.compiled.program, pairing.task, pairing.ids[base])
    edges = read.carrying | read.counted
    wholly = interchanged(studied, heads, base, source)
    along, _ = patched(studied, EdgePatch(base, source, edges, "values"), heads=heads)
    at_risk = (own[base] != own[source]) & (own[base] != NOT_ASKED)
    trials = one_of_each(pairing.answered, base, wholly == along, at_risk, rng, source)
    others = (wholly == along[rng.permutation(n)])[at_risk]
    return trials, float(others.mean()) if others.size else float("nan")
