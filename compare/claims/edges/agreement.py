"""How far a model answers as the program says when its attention edges are patched."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from jaxtyping import Int

from rasplens.compare.claims.claim import Enumerated
from rasplens.compare.claims.edges.attention_scores import why_not_patchable
from rasplens.compare.claims.edges.edge_patching import patched
from rasplens.compare.claims.edges.enumeration import enumerator
from rasplens.compare.claims.edges.program_edges import Edges, between_positions
from rasplens.compare.claims.edges.questions import CountedEdges, OtherEdges, Questions, Route, in_words, questions
from rasplens.compare.claims.trials.independent import PairsFrom, Trials, no_trials, one_of_each
from rasplens.compare.claims.trials.stopping import looks, until_decided
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import Head, StudiedModel
from rasplens.model import random_streams

FEWEST = 5
"""Inputs that a model has to answer as the program does, to be asked how."""

MOST_ALONE = 32
"""Of models with more heads, all heads of a layer are left out together."""

COLUMNS = (
    "claim", "part", "drawn", "edges", "changed", "n_changed", "control_changed", "kept", "n_kept", "control_kept",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RouteTest:
    """A model's answers to the questions about one route.

    Of each pair one answer counts, drawn at random, so that pairs are independent trials.

    Attributes:
        questions: The first that were asked.
        changed: For each pair with an answer that has to change, whether it is as expected.
        kept: For each pair with an answer that has to stay although the source's is another, whether it does.
        control_changed: What answers to other questions reach: the expected answers, shuffled over pairs.
        control_kept: What stays when the same part of all edges between positions is patched; NaN where that is
            what is asked.
        heads: The learned heads in which edges are patched; None for all.
        again: Trials of both on other pairs, drawn from some inputs, in the same heads.
        example: A question that the model answers otherwise, in words; empty where there is none.
    """

    questions: Questions
    changed: Trials
    kept: Trials
    control_changed: float
    control_kept: float
    heads: Sequence[Head] | None
    again: Callable[[PairsFrom], tuple[Trials, Trials]]
    example: str = ""


@dataclass(frozen=True, eq=False)
class RouteTests:
    """The questions about routes.

    Attributes:
        found: Each with what the model answers.
        why_none: Why none could be asked; empty where some were.
        enumerated: By claim, the result on all pairs of inputs, where there are few enough.
    """

    found: Sequence[RouteTest]
    why_none: str
    enumerated: Mapping[Route, Enumerated] = field(default_factory=dict)


def tested_routes(study: Study, seed: int) -> RouteTests:
    """Every claim on routes, tested; on all pairs of inputs too, where there are few enough."""
    found, why_none = route_tests(study.scored, seed)
    whole = study.whole
    if whole is None:
        return RouteTests(found, why_none, {})
    pairs = enumerator(whole)
    each = {one.questions.subject: pairs.enumerated(one.questions, one.heads) for one in found}
    return RouteTests(found, why_none, {subject: one for subject, one in each.items() if one is not None})


def route_tests(pairing: Pairing, seed: int) -> tuple[list[RouteTest], str]:
    """Every claim on routes, tested; and if none can be tested, why."""
    if why := why_not_patchable(pairing.learned):
        return [], why
    if (n := int(pairing.agrees.sum())) < FEWEST:
        return [], f"the model gives all of the program's answers on {n} inputs, where {FEWEST} are needed"
    rng = random_streams.rng(seed, "edge patching answers")
    first = questions(pairing, seed, looks(pairing.config.questions)[0])
    return [_tested(pairing, asked, patched_heads(pairing, asked), rng) for asked in first], ""


def route_table(found: Sequence[RouteTest]) -> pd.DataFrame:
    """One row per claim: columns `COLUMNS`.

    These are the claim, the part that was patched, how many pairs were drawn, the mean share of the edges that was
    patched; the shares of changed and of kept answers as expected, each with its number of pairs and its control.
    """
    rows = []
    for one in found:
        asked = one.questions
        edges = _mean(asked.patch.edges)
        shares = (_mean(one.changed.right), len(one.changed), one.control_changed)
        rows.append(
            (
                str(asked.subject),
                asked.patch.part,
                asked.drawn,
                edges,
                *shares,
                _mean(one.kept.right),
                len(one.kept),
                one.control_kept,
            )
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def patched_heads(pairing: Pairing, asked: Questions) -> Sequence[Head] | None:
    """The learned heads in which edges are patched; None for all.

    Counted edges are removed from the heads that count. Which these are is not known, and other heads may read the
    same edges for something else. So a head is left out if more questions are then answered as expected. The pairs
    of these questions judge nothing.
    """
    studied = pairing.learned
    if not isinstance(asked.subject, CountedEdges):
        return None
    own = asked.again(None, pairing.config.questions).of(slice(2 * pairing.config.questions))
    if not own.changes.any():
        return None

    def agreement(heads: Sequence[Head]) -> float:
        right = _answers(studied, own, heads) == own.expected
        return min(_mean(right[which]) for which in (own.changes, own.at_risk) if which.any())

    kept, best = list(studied.heads), agreement(studied.heads)
    groups = [[head] for head in kept]
    if len(kept) > MOST_ALONE:
        groups = [[(layer, head) for head in studied.heads_of(layer)] for layer in studied.attending_layers]
    without = [agreement([head for head in kept if head not in group]) for group in groups]
    for i in np.argsort(-np.array(without), kind="stable"):
        others = [head for head in kept if head not in groups[i]]
        if (score := agreement(others)) > best:
            kept, best = others, score
    return kept


def _answers(
    studied: StudiedModel, asked: Questions, heads: Sequence[Head] | None, edges: Edges | None = None
) -> Int[np.ndarray, "pair answer"]:
    """A model's answers with the edges patched that are asked about, or others."""
    patch = asked.patch if edges is None else replace(asked.patch, edges=edges)
    return patched(studied, patch, heads=heads)[0]


def _tested(
    pairing: Pairing, first: Questions, heads: Sequence[Head] | None, rng: np.random.Generator
) -> RouteTest:
    config, asked, examples = pairing.config, list[Questions](), list[str]()

    def trials(questions: Questions, n: int) -> tuple[Trials, Trials]:
        """On so many of some questions, with an answer that changes and one that stays."""
        if not len(questions):
            return (nothing := no_trials(pairing.answered)), nothing
        base, source = questions.patch.base, questions.patch.source
        given = _answers(pairing.learned, questions, heads)
        right = given == questions.expected
        wrong = ~right & (questions.changes | questions.at_risk)
        examples.append(in_words(pairing.answered, questions.patch, questions.expected, given, wrong))
        changed, kept = (
            one_of_each(pairing.answered, base, right, which, rng, source).of(slice(n))
            for which in (questions.changes, questions.at_risk)
        )
        return changed, kept

    def ask(n: int) -> tuple[Trials, Trials]:
        asked.append(first.again(None, n) if asked else first)
        return trials(asked[-1], n)

    def again(pairs: PairsFrom) -> tuple[Trials, Trials]:
        return trials(first.again(pairs, config.questions), config.questions)

    changed, kept = until_decided(ask, looks(config.questions), config.comparisons)
    if not len(first):
        return RouteTest(first, changed, kept, np.nan, np.nan, heads, again)
    shuffled = first.expected[rng.permutation(len(first))] == first.expected
    control_kept = np.nan
    if isinstance(first.subject, OtherEdges | CountedEdges):
        everything = np.broadcast_to(between_positions(pairing.task), first.patch.edges.shape)
        lost = _answers(pairing.learned, first, heads, everything) == first.expected
        control_kept = _mean(lost[first.at_risk])
    return RouteTest(
        questions=replace(first, drawn=sum(one.drawn for one in asked)),
        changed=changed,
        kept=kept,
        control_changed=_mean(shuffled[first.changes]),
        control_kept=control_kept,
        heads=heads,
        again=again,
        example=next(filter(None, examples), ""),
    )


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")
