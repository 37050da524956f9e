"""All kinds of claims that programs make. A new one is a module, and its name in `CLAIMS`."""

from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from rasplens.compare.claims.answers import ANSWERS
from rasplens.compare.claims.attention import ATTENTION
from rasplens.compare.claims.claim import Claim, Subject
from rasplens.compare.claims.class_by_class import class_by_class
from rasplens.compare.claims.effects.given_answers import AGREEMENT
from rasplens.compare.claims.effects.part import EFFECTS
from rasplens.compare.claims.joint import JOINT
from rasplens.compare.claims.kind import ClaimKind, Evidence, Progress
from rasplens.compare.claims.nothing_else import NOTHING_ELSE
from rasplens.compare.claims.routes import ROUTES
from rasplens.compare.claims.variables import VARIABLES
from rasplens.compare.study import Study
from rasplens.compare.subject.threads import few_threads
from rasplens.model import random_streams

CLAIMS: tuple[ClaimKind[Any], ...] = (
    ANSWERS, AGREEMENT, VARIABLES, JOINT, ROUTES, EFFECTS, ATTENTION, NOTHING_ELSE,
)  # fmt: skip
"""In the order in which they are tested; each may use what those before it found."""

SUBJECTS: tuple[type[Subject], ...] = tuple(subject for kind in CLAIMS for subject in kind.subjects)


def examine(study: Study, seed: int, progress: Progress | None = None) -> tuple[tuple[Claim, ...], Evidence]:
    """Every claim that a program makes of a model, with its status; and the evidence.

    Args:
        study: The models on the same inputs.
        seed: Of pairs and controls, and of which answer of a pair counts.
        progress: Called with the name of each kind of claim.
    """
    evidence, claims, rng = Evidence(), list[Claim](), random_streams.rng(seed, "claims")
    with few_threads(study.scored.reference.model, study.learned.model):
        for kind in CLAIMS:
            if study.scope not in kind.scopes:
                continue
            if progress is not None:
                progress(kind.name)
                evidence = replace(evidence, step=partial(_step, progress, kind.name))
            evidence = evidence.also(kind, kind.test(study, evidence, seed))
            claims += kind.claims(study, evidence, rng)
    return tuple(class_by_class(claims, study.config.comparisons)), evidence


def _step(progress: Progress, stage: str, step: str) -> None:
    progress(f"{stage}: {step}")


def claim_tables(evidence: Evidence) -> dict[str, pd.DataFrame]:
    """The tidy tables of the evidence, by name."""
    tables: dict[str, pd.DataFrame] = {}
    for kind in CLAIMS:
        if kind.name in evidence.by_kind:
            tables |= kind.tables(evidence.of(kind))
    return tables
