"""The sentences on ablation effects."""

import math

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.ablation.profiles import CRITICAL, Correlation, Overlap
from rasplens.compare.report.sentences import axis_sentence, p_value, table

REPAIRED = 0.05
"""Pairs of heads are named if together they cost this much more accuracy than the sum of both alone."""


def ablation_sentences(comparison: Comparison) -> list[str]:
    """The paragraph on ablation: heads, edges, matched heads, and self-repair."""
    sentences = [axis_sentence(comparison, "ablation")]
    for side, heads in comparison.by_side("heads").items():
        if heads.empty:
            sentences.append(f"The {side} model has no attention heads to ablate.")
            continue
        worst = heads.loc[heads["zero"].idxmax()]
        sentences.append(
            f"In the {side} model, L{worst['layer']:.0f}H{worst['head']:.0f} has the largest ablation effect: "
            f"accuracy drops by {worst['zero']:.2f} under zero, {worst['mean']:.2f} under mean and "
            f"{worst['resample']:.2f} under resample ablation."
        )
    sentences += [_correlated(method, found) for method, found in comparison.correlations.items()]
    sentences += [_critical(method, found) for method, found in comparison.overlaps.items() if found.either]
    return sentences + _matched(comparison) + _repaired(comparison)


def _correlated(method: str, found: Correlation | None) -> str:
    if found is None:
        return f"Under {method} ablation one of the edge profiles is constant: no correlation is defined."
    return (
        f"Under {method} ablation the effects of {found.n} edges have a rank correlation of {found.rho:.2f} "
        f"between the models; with the keys of each row permuted, {found.within_rows:.2f} ({p_value(found.p)})."
    )


def _critical(method: str, found: Overlap) -> str:
    if found.expected == 0:
        return (
            f"Under {method} ablation {found.either} edges are critical (accuracy drops by more than {CRITICAL}) "
            "in one model, none in the other."
        )
    return (
        f"Under {method} ablation {found.either} edges are critical (accuracy drops by more than {CRITICAL}) in "
        f"either model, {found.shared} of them in both; by chance, {found.expected:.1f} would be "
        f"({p_value(found.p)})."
    )


def _matched(comparison: Comparison) -> list[str]:
    sentences = []
    for row in table(comparison, "matched_profiles").itertuples():
        if row.method == "zero":
            others = "" if math.isnan(row.unmatched) else f"; with the other learned heads, {row.unmatched:.2f}"
            sentences.append(
                f"Over positions, the ablation effects of the head for {row.variable!r} and of its match "
                f"{row.learned} have a rank correlation of {row.rho:.2f} ({p_value(row.p)}){others}."
            )
    return sentences


def _repaired(comparison: Comparison) -> list[str]:
    joint = table(comparison, "joint_learned")
    if joint.empty:
        return []
    found = joint[joint["zero_repaired"] > REPAIRED].sort_values("zero_repaired", ascending=False)
    if found.empty:
        return []
    pairs = [f"{row.first} and {row.second} by {row.zero_repaired:.2f}" for row in found.head(3).itertuples()]
    return [
        f"{len(found)} of the {len(joint)} pairs of learned heads cost more accuracy together than the sum of "
        f"both alone, as if each repaired the damage of the other: {'; '.join(pairs)}"
        f"{', and others' if len(found) > len(pairs) else ''}."
    ]
