"""The sentences on residual subspaces: what can be decoded, and which variables share one."""

import math
from typing import Any

import pandas as pd

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.subspaces.decodability import CONTROLS, best_points
from rasplens.compare.report.sentences import CLEARLY, axis_sentence, table
from rasplens.model.hook_points import when

SHARED = 0.5
"""Variables whose subspaces overlap by more than this are named as sharing one."""


MOST_SHARING = 3
"""Pairs of variables that are named; the table has all."""


def subspace_sentences(comparison: Comparison) -> list[str]:
    """The paragraph on what can be decoded."""
    decoded = table(comparison, "decodability")
    sentences = [axis_sentence(comparison, "subspaces")]
    if decoded.empty:
        return [*sentences, "No variable that the program uses varies over these inputs: nothing can be decoded."]
    best = best_points(decoded)
    found = best[best["selectivity"] > CLEARLY].sort_values("selectivity", ascending=False)
    missing = best[best["selectivity"] <= CLEARLY]
    sentences.append(
        f"A linear probe reads {len(found)} of the program's {len(best)} varying variables from the learned "
        f"residual stream at more than {CLEARLY} above every control."
    )
    if len(found):
        sentences.append("; ".join(_decoded(row) for row in found.itertuples()) + ".")
    if len(missing):
        decodings = "; ".join(_decoded(row) for row in missing.itertuples())
        sentences.append(f"Not clearly above the controls: {decodings}.")
    return sentences


def _decoded(row: Any) -> str:
    control = max(CONTROLS, key=lambda name: getattr(row, name))
    return (
        f"{row.variable!r} at {row.point} ({row.measure} {row.score:.2f}, best control {control} "
        f"{getattr(row, control):.2f})"
    )


def overlap_sentences(comparison: Comparison) -> list[str]:
    """The paragraph on variables that share a subspace."""
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
        f"{sentence}; the vectors of equal values have a correlation of {row.correlation:.2f}, and those of the "
        f"second are {row.scale:.2f} times as large."
    )


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
    in_order = sorted(frame["point"].unique(), key=when)
    depth = frame["point"].map(in_order.index)
    return frame.loc[depth.groupby([frame["first"], frame["second"]], sort=False).idxmax()].reset_index(drop=True)
