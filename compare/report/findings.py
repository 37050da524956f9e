"""The numbers of a comparison in plain sentences, generated from nothing but them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.ablation.profiles import CRITICAL, Correlation, Overlap
from rasplens.compare.evidence.axes import AXES
from rasplens.compare.evidence.subspaces.decodability import CONTROLS, best_points
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY, UNKNOWN

CLEARLY = 0.1
"""How far a score must stand above its best control to be called clearly above it."""

REPAIRED = 0.05
"""Pairs of heads are named that cost this much more accuracy together than the sum of both alone."""

ILLUSORY = 0.05
"""An interchange that scores lower by as much along its active directions is said to need others."""

SHARED = 0.5
"""Variables whose subspaces overlap by more than this are named as sharing one."""

MOST_SHARING = 3
"""Pairs of variables that are named; the table has all."""

METHODS = {"linear map": "the subspace of the linear map", "DAS": "a learned subspace"}

SAID = {
    IMPLEMENTS: "the learned model implements the program {}",
    PARTLY: "the learned model implements the program {} in part",
    NOT: "the learned model does not implement the program {}",
    UNKNOWN: "whether the learned model implements the program {} cannot be told",
}

BY_VARIABLE = {IMPLEMENTS: "implemented", PARTLY: "partly implemented", NOT: "not implemented"}


@dataclass(frozen=True)
class Paragraph:
    """What is said, and the part of the report that shows it.

    Attributes:
        about: The name of a section of the report.
        sentences: What is said; the first one sums up the rest.
    """

    about: str
    sentences: tuple[str, ...]


def findings(comparison: Comparison) -> list[str]:
    """The verdict, a paragraph on each axis, and one on variables that share a subspace, if any do."""
    return [" ".join(paragraph.sentences) for paragraph in paragraphs(comparison)]


def paragraphs(comparison: Comparison) -> list[Paragraph]:
    """The findings, each with what it is about."""
    said: dict[str, Callable[[Comparison], list[str]]] = {
        "evidence": _verdict,
        "behaviour": _behaviour,
        "interchange": _interchange,
        "attention": _attention,
        "ablation": _ablation,
        "subspaces": _subspaces,
        "overlaps": _overlaps,
    }
    made = [Paragraph(about, tuple(say(comparison))) for about, say in said.items()]
    return [paragraph for paragraph in made if paragraph.sentences]


def table(comparison: Comparison, name: str) -> pd.DataFrame:
    """A table of a comparison; one without rows or columns where there is none."""
    return comparison.tables.get(name, pd.DataFrame())


def last_overlaps(comparison: Comparison) -> pd.DataFrame:
    """How the subspaces of each two variables lie at the last hook point where both have one.

    Returns:
        Columns first, second, point, and shared, correlation and scale, averaged over positions.
    """
    found = table(comparison, "overlaps")
    if found.empty:
        return found
    numbers = ["shared", "correlation", "scale"]
    means = found.astype(dict.fromkeys(numbers, float)).groupby(["first", "second", "point"], sort=False)[numbers]
    frame = means.mean().reset_index()
    depth = frame["point"].map(depth_of)
    return frame.loc[depth.groupby([frame["first"], frame["second"]], sort=False).idxmax()].reset_index(drop=True)


def depth_of(point: str) -> int:
    """Where a hook point of the residual stream comes in forward order."""
    _, layer, state = point.split(".")
    return 3 * int(layer) + ("hook_resid_pre", "hook_resid_mid", "hook_resid_post").index(state)


def _verdict(comparison: Comparison) -> list[str]:
    verdict = comparison.verdict
    sentence = f"On the task {comparison.task!r}, " + SAID[verdict.answer].format(repr(comparison.program))
    if not math.isnan(verdict.probability):
        sentence += f" (P(implements) = {verdict.probability:.2f}, {verdict.low:.2f} to {verdict.high:.2f})"
    sentences = [f"{sentence}."]
    sentences += [reason for reason in verdict.reasons if not reason.startswith(AXES)]
    by_answer: dict[str, list[str]] = {}
    for name, answer in verdict.variables.items():
        by_answer.setdefault(answer, []).append(name)
    if by_answer:
        parts = [f"{BY_VARIABLE[answer]}: {_names(found)}" for answer, found in by_answer.items()]
        sentences.append(f"Of its variables between input and output, {'; '.join(parts)}.")
    return sentences


def _axis(comparison: Comparison, name: str) -> str:
    axis = comparison.axis(name)
    if not axis.has_score:
        return f"{name.capitalize()} has no score: {axis.note}."
    interval = f"95 % interval {axis.low:.2f} to {axis.high:.2f}"
    return f"{name.capitalize()} scores {axis.score:.2f} of 1 ({interval}; 0 is what the controls reach)."


def _behaviour(comparison: Comparison) -> list[str]:
    learned, untrained = comparison.accuracies["learned"], comparison.accuracies["untrained"]
    compiled = comparison.accuracies["compiled"]
    sentences = [
        _axis(comparison, "behaviour"),
        f"On {comparison.n_inputs:,} held-out inputs the learned model gets {_percent(learned.token)} of the "
        f"answers right and {_percent(learned.sequence)} of the inputs throughout; the compiled program "
        f"{_percent(compiled.token)} and {_percent(compiled.sequence)}; an untrained model "
        f"{_percent(untrained.token)} of the answers.",
    ]
    kinds = [
        f"{_percent(row.agreement)} on {row.n:,} {_kind(row.inputs)} (untrained {_percent(row.untrained)})"
        for row in table(comparison, "behaviour").itertuples()
        if row.n
    ]
    if kinds:
        sentences.append(f"Its answers agree with the program's: {'; '.join(kinds)}.")
    return sentences


def _kind(inputs: str) -> str:
    """What the behaviour table calls inputs, as a noun."""
    alternative = inputs.removeprefix("against ")
    return (
        f"inputs that tell it from {alternative!r}"
        if alternative != inputs
        else f"{inputs.replace(' ', '-')} inputs"
    )


def _interchange(comparison: Comparison) -> list[str]:
    sentences = [_axis(comparison, "interchange")]
    for row in table(comparison, "interchange").itertuples():
        sentences.append(
            f"{row.variable!r}, taken from another input at {row.point} ({METHODS[row.method]}, {row.pairs} "
            f"pairs), gives the program's answers at a score of {row.score:.2f}; random subspaces of the same "
            f"rank get {row.random:.2f}, an untrained model {row.untrained:.2f}, and the whole stream "
            f"{row.full_stream:.2f}." + _illusion(row)
        )
    return sentences


def _illusion(row: Any) -> str:
    """What to say of an interchange that needs directions along which the variable moves nothing."""
    if row.score - max(row.random, row.untrained) <= CLEARLY or row.score - row.active < ILLUSORY:
        return ""
    return (
        f" Along directions that the variable itself moves and the model reads it gets only {row.active:.2f}: the "
        "rest goes by a path that may be dormant otherwise."
    )


def _attention(comparison: Comparison) -> list[str]:
    found = table(comparison, "attention")
    sentences = [_axis(comparison, "attention")]
    if found.empty:
        return sentences
    matched = found[found["matched"]]
    for row in matched.sort_values("input_dependence", ascending=False).itertuples():
        sentences.append(
            f"The compiled head for {row.variable!r} is matched with the learned L{row.layer}H{row.head}: "
            f"similarity {row.similarity:.2f} of 1, "
            f"{row.shuffled:.2f} with the rows of other inputs ({_p(row.p)}), "
            f"{row.untrained:.2f} for the most similar head of an untrained model." + _concordance(row.concordance)
        )
    heads = found.groupby(["compiled_layer", "compiled_head"])
    if unmatched := sorted(set(heads["variable"].first()[~heads["matched"].any()])):
        sentences.append(f"The learned model has no head left for {_names(unmatched)}.")
    for row in table(comparison, "shared_heads").itertuples():
        sentences.append(
            f"{row.learned} together attend more like the head for {row.compiled!r} than either does, by "
            f"{row.gain:.2f}."
            if row.kind == "split"
            else f"{row.learned} is the most similar head for all of: {row.compiled}."
        )
    return sentences


def _concordance(found: float) -> str:
    if math.isnan(found):
        return " The compiled head attends alike on all inputs."
    return f" Its attention changes over inputs like the compiled head's at a concordance of {found:.2f}."


def _ablation(comparison: Comparison) -> list[str]:
    sentences = [_axis(comparison, "ablation")]
    for side, heads in comparison.by_side("heads").items():
        if heads.empty:
            sentences.append(f"The {side} model has no attention heads to ablate.")
            continue
        worst = heads.loc[heads["zero"].idxmax()]
        sentences.append(
            f"In the {side} model, L{worst['layer']:.0f}H{worst['head']:.0f} has the largest ablation effect: "
            f"accuracy drops by {worst['zero']:.2f} (by {worst['mean']:.2f} under mean ablation, by "
            f"{worst['resample']:.2f} under resample ablation)."
        )
    sentences += [_correlated(method, found) for method, found in comparison.correlations.items()]
    sentences += [_critical(method, found) for method, found in comparison.overlaps.items() if found.either]
    return sentences + _matched(comparison) + _repaired(comparison)


def _correlated(method: str, found: Correlation | None) -> str:
    if found is None:
        return f"Under {method} ablation one of the edge profiles is flat: no correlation exists."
    return (
        f"Under {method} ablation the effects of {found.n} edges correlate at rank {found.rho:.2f} between "
        f"the models, against {found.within_rows:.2f} with the keys of each row permuted ({_p(found.p)})."
    )


def _critical(method: str, found: Overlap) -> str:
    if found.expected == 0:
        return (
            f"Under {method} ablation {found.either} edges cost more than {CRITICAL} of accuracy in one model, "
            "none in the other."
        )
    return (
        f"Under {method} ablation {found.either} edges cost more than {CRITICAL} of accuracy in either model, "
        f"{found.shared} of them in both; {found.expected:.1f} would by chance ({_p(found.p)})."
    )


def _matched(comparison: Comparison) -> list[str]:
    sentences = []
    for row in table(comparison, "matched_profiles").itertuples():
        if row.method == "zero":
            others = "" if math.isnan(row.unmatched) else f"; with the other learned heads at {row.unmatched:.2f}"
            sentences.append(
                f"Over positions, the ablation effect of the head for {row.variable!r} correlates with that of "
                f"its match {row.learned} at rank {row.rho:.2f} ({_p(row.p)}){others}."
            )
    return sentences


def _repaired(comparison: Comparison) -> list[str]:
    joint = table(comparison, "joint_learned")
    if joint.empty:
        return []
    found = joint[joint["zero_repaired"] > REPAIRED].sort_values("zero_repaired", ascending=False)
    if found.empty:
        return []
    pairs = [f"{row.first} and {row.second} {row.zero_repaired:.2f}" for row in found.head(3).itertuples()]
    return [
        f"{len(found)} of the {len(joint)} pairs of learned heads cost more accuracy together than the sum of "
        f"both alone, as where one repairs the damage of the other: {'; '.join(pairs)} more"
        f"{', and others' if len(found) > len(pairs) else ''}."
    ]


def _subspaces(comparison: Comparison) -> list[str]:
    decoded = table(comparison, "decodability")
    sentences = [_axis(comparison, "subspaces")]
    if decoded.empty:
        return [*sentences, "No variable that the program uses varies over these inputs: nothing can be decoded."]
    best = best_points(decoded)
    found = best[best["selectivity"] > CLEARLY].sort_values("selectivity", ascending=False)
    missing = best[best["selectivity"] <= CLEARLY]
    sentences.append(
        f"{len(found)} of the program's {len(best)} varying variables can be read from the learned residual "
        f"stream linearly by more than {CLEARLY} above every control."
    )
    if len(found):
        sentences.append("; ".join(_decoded(row) for row in found.itertuples()) + ".")
    if len(missing):
        decodings = "; ".join(_decoded(row) for row in missing.itertuples())
        sentences.append(f"Not clearly more than the controls explain: {decodings}.")
    return sentences


def _decoded(row: Any) -> str:
    control = max(CONTROLS, key=lambda name: getattr(row, name))
    return (
        f"{row.variable!r} at {row.point} ({row.measure} {row.score:.2f}, best control {control} "
        f"{getattr(row, control):.2f})"
    )


def _overlaps(comparison: Comparison) -> list[str]:
    found = last_overlaps(comparison)
    if found.empty:
        return []
    sharing = found[found["shared"] > SHARED].sort_values("shared", ascending=False)
    summary = (
        f"{len(sharing)} of {len(found)} pairs of variables share more than {SHARED} of the smaller one's "
        "subspace of the learned stream."
    )
    return [summary, *(_sharing(row) for row in sharing.head(MOST_SHARING).itertuples())]


def _sharing(row: Any) -> str:
    sentence = (
        f"{row.first!r} and {row.second!r} share {row.shared:.2f} of the smaller one's subspace at {row.point}"
    )
    if math.isnan(row.correlation):
        return f"{sentence}."
    return (
        f"{sentence}; what the same values write there correlates at {row.correlation:.2f}, and the second's is "
        f"{row.scale:.2f} times as large."
    )


def _names(found: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in found)


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
