"""The board of methods that look for variables: each variable of each model, each method."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from rasplens.compare.claims.interchange.patching import agreement
from rasplens.compare.config import CompareConfig
from rasplens.compare.discovery.cases import Case
from rasplens.compare.discovery.scoreboard import Report
from rasplens.compare.discovery.variables.finders import FINDERS, Finder, Found
from rasplens.compare.discovery.variables.problem import CONFIG, VariableProblem, variable_problems


@dataclass(frozen=True)
class VariableScore:
    """How a method does on a variable; NaN if it cannot look into such a model.

    Attributes:
        interchange: The agreement of the model with the program on pairs that the method has not seen, when what
            it found is interchanged at the site that it is surest of. Of the answers that are to change, a share
            does as expected, of the others a share stays: the smaller of the two; the mean over sites that tie.
        used: The same, the mean over all sites at which the variable is used.
        sites: The share of pairs of a site where it is used and one where it is not, of which the method is surer
            of the first; ties count half.
        rank: Of what it found at the site that it is surest of, the mean over positions.
    """

    interchange: float
    used: float
    sites: float
    rank: float


def variable_board(
    cases: Iterable[Case],
    finders: Mapping[str, Finder] = FINDERS,
    config: CompareConfig = CONFIG,
    seed: int = 0,
    progress: Report | None = None,
) -> pd.DataFrame:
    """One row for each variable that can be tested and each method: see `VariableScore`, and its seconds."""
    rows: list[dict[str, object]] = []
    problems = [(case, problem) for case in cases for problem in variable_problems(case, config, seed)]
    for case, problem in problems:
        for name, finder in finders.items():
            if progress is not None:
                said = f"{case.program}, {case.kind}, {problem.variable}: {name}"
                progress(said, len(rows), len(problems) * len(finders))
            began = time.perf_counter()
            found = {site: finder(problem, site) for site in problem.sites}
            seconds = time.perf_counter() - began
            rows.append(
                {
                    "program": case.program,
                    "kind": case.kind,
                    "variable": problem.variable,
                    "method": name,
                    **asdict(score_variable(problem, found)),
                    "method_seconds": seconds,
                }
            )
    columns = ["program", "kind", "variable", "method", *VariableScore.__dataclass_fields__, "method_seconds"]
    return pd.DataFrame(rows, columns=columns)


def score_variable(problem: VariableProblem, by_site: Mapping[str, Found | None]) -> VariableScore:
    """How a method does, by what it found at each site."""
    found = {site: one for site, one in by_site.items() if one is not None}
    if len(found) < len(by_site):
        return VariableScore(interchange=np.nan, used=np.nan, sites=np.nan, rank=np.nan)
    reached = {
        site: agreement(problem.study.learned, problem.scored, site, one.subspaces).score
        for site, one in found.items()
    }
    evidence = np.array([one.evidence for one in found.values()])
    surest = [site for site, one in found.items() if one.evidence >= evidence.max() - 1e-9]
    is_used = [problem.sites[site] == "used" for site in found]
    return VariableScore(
        interchange=float(np.mean([reached[site] for site in surest])),
        used=float(np.mean([reached[site] for site, used in zip(found, is_used, strict=True) if used])),
        sites=float(roc_auc_score(is_used, evidence)),
        rank=float(np.mean([one.rank for site in surest for one in found[site].subspaces.values()] or 0.0)),
    )
