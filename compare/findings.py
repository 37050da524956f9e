"""The numbers of a comparison in plain sentences, generated from nothing but them."""

from typing import Any

import pandas as pd

from rasplens.compare.comparison import Comparison

CLEARLY = 0.1
"""How far a score must stand above its best control to be called clearly above it."""

CONTROLS = ["chance", "shuffled", "untrained"]


def findings(comparison: Comparison) -> list[str]:
    """A paragraph on behaviour and one on each axis."""
    return [
        _behaviour(comparison),
        _subspaces(comparison),
        _attention(comparison),
        _ablation(comparison),
        "These are measurements, not a verdict: how far scores like these have to go before a model can be "
        "said to implement a program has not been calibrated.",
    ]


def _behaviour(comparison: Comparison) -> str:
    learned, untrained = comparison.accuracies["learned"], comparison.accuracies["untrained"]
    compiled = comparison.accuracies["compiled"]
    return (
        f"On {comparison.n_inputs:,} held-out inputs of {comparison.task!r} the learned model gets "
        f"{_percent(learned.token)} of the answers right and {_percent(learned.sequence)} of the inputs "
        f"throughout; the compiled program {comparison.program!r} {_percent(compiled.token)} and "
        f"{_percent(compiled.sequence)}; an untrained model {_percent(untrained.token)} of the answers. "
        f"Learned and compiled model give the same answer in {_percent(comparison.agreement)} of the cases."
    )


def best_points(comparison: Comparison) -> pd.DataFrame:
    """For each variable, the hook point where it stands highest above its best control."""
    table = comparison.decodability_by_point()
    table["selectivity"] = table["score"] - table[CONTROLS].max(axis=1)
    return table.loc[table.groupby("variable", sort=False)["selectivity"].idxmax()].reset_index(drop=True)


def _subspaces(comparison: Comparison) -> str:
    if comparison.decodability.empty:
        return "No variable that the program uses varies over these inputs, so there is nothing to decode."
    best = best_points(comparison)
    found = best[best["selectivity"] > CLEARLY].sort_values("selectivity", ascending=False)
    missing = best[best["selectivity"] <= CLEARLY]
    if found.empty:
        return (
            f"None of the program's {len(best)} varying variables can be read from the learned residual stream "
            f"linearly by more than {CLEARLY} above its best control."
        )
    sentences = [
        f"{len(found)} of the program's {len(best)} varying variables can be read from the learned residual "
        "stream linearly, clearly above every control:",
        "; ".join(_decoded(row) for row in found.itertuples()) + ".",
    ]
    if len(missing):
        names = ", ".join(repr(name) for name in missing["variable"])
        sentences.append(f"No more than the controls explain: {names}.")
    return " ".join(sentences)


def _decoded(row: Any) -> str:
    control = max(CONTROLS, key=lambda name: getattr(row, name))
    return (
        f"{row.variable!r} at {row.point} ({row.measure} {row.score:.2f}, best control {control} "
        f"{getattr(row, control):.2f})"
    )


def _attention(comparison: Comparison) -> str:
    if comparison.attention.empty:
        return "No compiled head acts on a row that could look elsewhere, so there is no attention to compare."
    matched = comparison.attention[comparison.attention["matched"]]
    unmatched = sorted(set(comparison.attention["variable"]) - set(matched["variable"]))
    sentences = [
        f"The compiled head for {row.variable!r} is matched with the learned L{row.layer}H{row.head}: "
        f"similarity {row.similarity:.2f} of 1, {row.shuffled:.2f} when inputs are swapped, so {row.content:.2f} "
        "is due to content."
        for row in matched.sort_values("content", ascending=False).itertuples()
    ]
    if unmatched:
        names = ", ".join(repr(name) for name in unmatched)
        sentences.append(f"The learned model has no head left for {names}.")
    return " ".join(sentences)


def _ablation(comparison: Comparison) -> str:
    sentences = []
    for side, heads in comparison.heads.items():
        if heads.empty:
            sentences.append(f"The {side} model has no attention heads to ablate.")
            continue
        worst = heads.loc[heads["zero"].idxmax()]
        sentences.append(
            f"In the {side} model, L{worst['layer']:.0f}H{worst['head']:.0f} is worth most: without it accuracy "
            f"falls by {worst['zero']:.2f} (by {worst['mean']:.2f} with its mean in place)."
        )
    for way, correlation in comparison.correlations.items():
        if correlation is None:
            sentences.append(f"Under {way} ablation one of the edge profiles is flat: no correlation exists.")
        else:
            sentences.append(
                f"Under {way} ablation the worth of {correlation.n} attention edges correlates at rank "
                f"{correlation.rho:.2f} between the models, against {correlation.within_rows:.2f} with the keys "
                f"of each row permuted (p = {correlation.p:.3f})."
            )
    return " ".join(sentences)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
