"""Where the parts of a program were found in the learned model: each variable, and each head."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rasplens.compare.claims.attention import AttendsLike
from rasplens.compare.claims.claim import Claim, Subject
from rasplens.compare.claims.edges.questions import GatheredEdges
from rasplens.compare.claims.joint import TwoVariables
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, IN_PART, OPEN, UNTESTABLE, Status
from rasplens.compare.claims.variables import OneVariable
from rasplens.compare.comparison import Comparison
from rasplens.compare.report.attention_view import best_matches, head_name
from rasplens.compare.report.sentences import table
from rasplens.compare.subject.studied_model import Head

SCORES = {
    "iia": "IIA",
    "specificity": "specificity",
    "active": "active part",
    "full_stream": "full-stream patching",
    "random": "random subspaces",
    "untrained": "untrained model",
    "ceiling": "compiled model",
}
"""The scores of a variable's interchange, in words, by the column of its table."""


WORST_FIRST: tuple[Status, ...] = (FAILS, IN_PART, OPEN, HOLDS, UNTESTABLE)


@dataclass(frozen=True)
class Located:
    """A part of the program.

    Attributes:
        what: A variable, or a compiled head with its variable.
        where: The hook point, or the learned head.
        status: Of its claim.
        score: With its interval.
        evidence: What else was measured, in a sentence or two.
    """

    what: str
    where: str
    status: Status
    score: str
    evidence: str


def variables_found(comparison: Comparison) -> list[Located]:
    """Each claim on variables, with its place and the scores of the interchange there."""
    sites = {row["variable"]: row for row in table(comparison, "interchange").to_dict(orient="records")}
    found = []
    for claim in comparison.verdict.all_claims:
        if isinstance(claim.subject, OneVariable | TwoVariables):
            names = claim.subject.names
            site = sites.get(names[0]) if len(names) == 1 else None
            where = f"{site['point']} ({site['method']}, rank {site['rank']:.0f})" if site else "–"
            evidence = f"{claim.reason[0].upper()}{claim.reason[1:]}." + (f" {_scores(site)}." if site else "")
            found.append(Located(" and ".join(names), where, claim.status, score_text(claim), evidence))
    return found


def _scores(site: Mapping[str, Any]) -> str:
    known = {title: site[column] for column, title in SCORES.items() if site.get(column) is not None}
    return ", ".join(f"{title} {score:.2f}" for title, score in known.items() if score == score)


def heads_found(comparison: Comparison) -> list[Located]:
    """Each compiled head, the learned head that attends most like it, and the claims on what it gathers.

    Where several are about a head, its status is the worst of them.
    """
    found = table(comparison, "attention")
    heads = []
    for compiled, learned in best_matches(comparison).items():
        is_row = (found[["compiled_layer", "compiled_head", "layer", "head"]] == [*compiled, *learned]).all(axis=1)
        row = found[is_row].iloc[0]
        evidence = f"Similarity {row['similarity']:.2f}, shuffled {row['shuffled']:.2f}"
        if row["concordance"] == row["concordance"]:
            evidence += f", concordance {row['concordance']:.2f}"
        claims = [claim for claim in comparison.verdict.all_claims if _is_about(claim.subject, compiled)]
        for claim in claims:
            evidence += f". {claim.words}: {score_text(claim)}; {claim.reason}"
        said = {claim.status for claim in claims}
        status: Status = next((status for status in WORST_FIRST if status in said), UNTESTABLE)
        what = f"{head_name(compiled)}, {row['variable']}"
        heads.append(Located(what, head_name(learned), status, f"{row['similarity']:.2f}", f"{evidence}."))
    return heads


def _is_about(subject: Subject, compiled: Head) -> bool:
    """Whether a claim is about what a compiled head gathers, or where it attends."""
    if isinstance(subject, GatheredEdges):
        return compiled in subject.heads
    return isinstance(subject, AttendsLike) and subject.compiled == compiled


def score_text(claim: Claim) -> str:
    """A score with its interval and its control."""
    if not claim.is_measured:
        return "–"
    control = f", control {claim.control:.2f}" if claim.control == claim.control else ""
    return f"{claim.score:.2f} ({claim.low:.2f} to {claim.high:.2f}{control})"
