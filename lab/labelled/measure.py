"""Measures of verdicts on labelled pairs: how often they are right, by family."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from lab.labelled.circuits import CIRCUITS, NOT_TOLD_APART, Circuit
from lab.labelled.hidden_mechanisms import HIDDEN
from lab.labelled.labelled_pairs import ALTERNATIVE, SIIT, LabelledPair, labelled_pairs
from rasplens.compare.claims.claim import worst_first
from rasplens.compare.claims.trials.judging import UNTESTABLE
from rasplens.compare.config import CompareConfig, Preset, get_config
from rasplens.compare.pairing.distinguishing import discriminate
from rasplens.compare.study import study_of
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, UNKNOWN, judge

Progress = Callable[[str, int], None]
"""Called with what is compared, and how many pairs are done."""


def observe(
    labelled: LabelledPair, seed: int = 0, config: CompareConfig | Preset = "standard", as_part: bool = False
) -> dict[str, object]:
    """The verdict on one labelled pair, as a row of a table.

    Returns:
        circuit, program, model, same, verdict, its levels, the claim of variables or routes that holds least
        (empty if none could be tested) and its score, reasons, and all claims as JSON values.
    """
    reference, task = labelled.reference, labelled.task
    apart = discriminate(reference.program, labelled.alternative.program, task, seed=seed)
    study = study_of(
        reference,
        labelled.model,
        task,
        get_config(config),
        seed,
        labelled.vocabulary,
        as_part,
        distinguishing={labelled.alternative.output: apart},
    )
    said = judge(study, seed)
    claims = [claim for claim in said.all_claims if claim.status != UNTESTABLE and claim.level != "answers"]
    least = next(iter(worst_first(claims)), None)
    return {
        "circuit": labelled.circuit,
        "program": labelled.program,
        "model": labelled.kind,
        "same": labelled.same,
        "verdict": said.answer,
        **{str(level): answer for level, answer in said.levels.items()},
        "least_claim": "" if least is None else least.words,
        "least_score": float("nan") if least is None else least.score,
        "reasons": " ".join(said.reasons[:3]),
        "claims": said.to_dict()["claims"],
    }


def calibrate(
    circuits: Iterable[Circuit] = tuple(CIRCUITS.values()),
    seed: int = 0,
    config: CompareConfig | Preset = "standard",
    progress: Progress | None = None,
    pairs: Callable[[Circuit, int], Iterable[LabelledPair]] = labelled_pairs,
) -> pd.DataFrame:
    """The verdicts on the labelled calibration set: one row per labelled pair, see `observe`.

    Args:
        circuits: Pairs of programs with the same answers.
        seed: Of everything random.
        config: Of the comparison of each pair.
        progress: Called as each pair begins.
        pairs: Which labelled pairs of a circuit: `labelled_pairs`, or `exact_pairs`, which trains nothing.
    """
    rows: list[dict[str, object]] = []
    for circuit in circuits:
        for labelled in pairs(circuit, seed):
            if progress is not None:
                progress(f"{labelled.program}: {labelled.kind}", len(rows))
            rows.append({"family": circuit.family, **observe(labelled, seed, config)})
    return pd.DataFrame(rows)


def measures(table: pd.DataFrame) -> dict[str, int | float]:
    """How verdicts do on labelled pairs; different ones that are `NOT_TOLD_APART` do not count, nor unknown ones.

    Returns:
        different and same (numbers of pairs), false_implements (the share of the different pairs that are said
        to implement the program) with false_implements_most (the upper end of its exact 95 % interval), recognised
        (the share of the same pairs that are said to implement it), false_does_not, and cannot_tell (of all).
    """
    table = table[is_told_apart(table)]
    same, different = (table[table["same"] == known]["verdict"] for known in (True, False))
    wrong = int((different == IMPLEMENTS).sum())
    most = binomtest(wrong, len(different)).proportion_ci().high if len(different) else float("nan")
    return {
        "different": len(different),
        "same": len(same),
        "false_implements": wrong / max(1, len(different)),
        "false_implements_most": float(most),
        "recognised": _share(same, IMPLEMENTS),
        "false_does_not": _share(same, NOT),
        "cannot_tell": _share(table["verdict"], UNKNOWN),
    }


def same_variables(table: pd.DataFrame) -> dict[str, int | float]:
    """How verdicts do on the models of `siit_pairs` that are known to have a program's variables.

    A program counts if its variables can be tested on the compiled model itself.

    Returns:
        models (how many), recognised (the share of which the verdict is "implements", or "implements" for the
        variables) and false_does_not (the share that are said not to implement the program).
    """
    itself = table[table["model"] == "itself"].set_index(["circuit", "program"])["variables"]
    models = table[table["model"] == SIIT].set_index(["circuit", "program"])
    models = models[itself[models.index] != UNTESTABLE]
    found = (models["verdict"] == IMPLEMENTS) | (models["variables"] == IMPLEMENTS)
    return {
        "models": len(models),
        "recognised": float(found.mean()) if len(models) else float("nan"),
        "false_does_not": _share(models["verdict"], NOT),
    }


def is_told_apart(table: pd.DataFrame) -> pd.Series:
    """Of each pair, whether it is known and could be told apart: the other program of `NOT_TOLD_APART` cannot.

    Nor can a model in which that program decides, beside the reference's own.
    """
    of_other = table["model"].str.startswith(ALTERNATIVE)
    hidden = table["model"].str.startswith(HIDDEN) & (table["same"] == False)  # noqa: E712
    untold = table["program"].isin(list(NOT_TOLD_APART)) & (of_other | hidden)
    return table["same"].notna() & ~untold


def by_group(table: pd.DataFrame, groups: Sequence[str]) -> pd.DataFrame:
    """How many pairs of each group get each verdict: one row per group, one column per verdict."""
    counts = table.groupby([*groups, "verdict"], sort=False).size()
    return counts.unstack(fill_value=0).reset_index()


def _share(verdicts: pd.Series, answer: str) -> float:
    return float(np.mean(verdicts == answer)) if len(verdicts) else float("nan")
