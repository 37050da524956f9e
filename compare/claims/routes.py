"""The claims on routes: with attention edges patched, the model answers as the program does."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rasplens.compare.claims.claim import Claim, judged_by_trials, untestable
from rasplens.compare.claims.edges.agreement import RouteTest, RouteTests, route_table, tested_routes
from rasplens.compare.claims.edges.program_edges import Aggregates
from rasplens.compare.claims.edges.questions import (
    CountedEdges,
    GatheredEdges,
    Keys,
    OtherEdges,
    Queries,
    Route,
)
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.input_classes import InputClass
from rasplens.compare.claims.trials.judging import AT_LEAST, HOLDS, least_trials
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import named
from rasplens.compare.term import Term


@dataclass(frozen=True)
class AllRoutes(Route):
    """Every claim on routes, where none can be tested."""

    def __str__(self) -> str:
        return "routes"


def gathered(tests: RouteTests, comparisons: int) -> set[Aggregates]:
    """The aggregates of which the questions tell whether values are gathered along their edges."""
    return {
        one.questions.subject.aggregates
        for one in tests.found
        if isinstance(one.questions.subject, GatheredEdges) and _is_substantial(one, comparisons)
    }


def _is_substantial(one: RouteTest, comparisons: int) -> bool:
    """Whether enough of the questions have to change an answer."""
    return len(one.changed) >= least_trials(AT_LEAST, comparisons)


def _claims(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    tests, comparisons = evidence.of(ROUTES), study.config.comparisons
    if tests.why_none:
        yield untestable(AllRoutes(), tests.why_none)
    if study.scored.as_part:
        yield untestable(OtherEdges(), "left open: the program is compared as a part of the model")
    for one in tests.found:
        asked, substantial = one.questions, _is_substantial(one, comparisons)
        reason = _reason(one) if len(asked) else ""
        control = float(np.fmax(one.control_changed, one.control_kept))
        parts = one.changed, one.kept
        claim = judged_by_trials(asked.subject, parts, control, substantial, reason, comparisons)
        claim = replace(claim, counterexample=one.example)
        if (enumerated := tests.enumerated.get(asked.subject)) is not None:
            claim = claim.on_all(enumerated)
        if claim.status == HOLDS and not isinstance(asked.subject, OtherEdges) and not substantial:
            # What has no effect there holds of many models.
            needed = least_trials(AT_LEAST, comparisons)
            why = f"{len(one.changed)} questions that change an answer could be asked, where {needed} are needed"
            claim = untestable(asked.subject, why)
        yield replace(claim, again=partial(_again, one))


def _reason(one: RouteTest) -> str:
    patch = one.questions.patch
    done = "removed" if patch.part == "attention" else "patched"
    where = "" if one.heads is None else f", in {named(one.heads)}"
    return f"{patch.part} {done} along {patch.edges.mean():.0%} of the edges{where}"


def _again(one: RouteTest, found: InputClass) -> tuple[Trials, Trials]:
    """Other trials of a route, on a class of inputs."""
    return one.again(found.pairs_from(one.changed.inputs))


TERMS = (
    Term(
        "edge patching",
        "Values, keys or queries along some edges come from another input, or counted edges are removed.",
        "claims.edges.edge_patching",
        ("part", "edges"),
    ),
    Term(
        "route",
        "Which attention edges information takes between positions, and what decides: keys, queries or a count.",
        "claims.edges.agreement",
        ("routes",),
    ),
    Term(
        "posable question",
        "An intervention after which selections, variables and answers are such as some input of the task has.",
        "claims.posable",
        ("drawn",),
    ),
    Term(
        "changed and kept answers",
        "Of those that an edge patch should change (or should not), the share that come out as the program says.",
        "claims.edges.agreement",
        ("changed", "n_changed", "kept", "n_kept"),
    ),
    Term(
        "controls of edge patching",
        "The answers expected of other pairs, and what stays when all edges between positions are patched.",
        "claims.edges.agreement",
        ("control_changed", "control_kept"),
    ),
)

ROUTES = ClaimKind(
    name="routes",
    subjects=(GatheredEdges, OtherEdges, Keys, Queries, CountedEdges, AllRoutes),
    test=lambda study, evidence, seed: tested_routes(study, seed),
    claims=_claims,
    tables=lambda tests: {"routes": route_table(tests.found)},
    terms=TERMS,
)
