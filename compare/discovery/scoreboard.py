"""The board: every method on every model whose circuit is known, in every setting."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

from rasplens.compare.discovery.cases import Case
from rasplens.compare.discovery.methods.catalogue import METHODS, Method
from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.compare.discovery.protocol import Protocol, Setting
from rasplens.compare.discovery.scoring import score_edges
from rasplens.errors import RaspLensError, expect

EDGE_COLUMNS = ["program", "kind", "setting", "method", "edge", "score", "label"]
"""Of `edge_scores`."""

Report = Callable[[str, int, int], None]
"""Progress callback, called with the task at hand, the steps done, and the steps in all."""


@dataclass(frozen=True, eq=False)
class MethodRun:
    """The scores of a method on a model, in a setting.

    Attributes:
        case: The model.
        setting_name: The setting's name.
        setting: The setting.
        method: The method's name.
        problem: What it was asked.
        scores: For each edge, NaN where it gives none.
        seconds: How long it took, compilation included.
    """

    case: Case
    setting_name: str
    setting: Setting
    method: str
    problem: Problem
    scores: Scores
    seconds: float


def board(
    cases: Iterable[Case],
    methods: Mapping[str, Method] = METHODS,
    settings: Mapping[str, Setting] = {"default": Setting()},
    progress: Report | None = None,
) -> pd.DataFrame:
    """One row for each case, setting and method: see `MethodScore`, and its seconds, compilation included.

    Settings that differ in the scoring alone share a method's scores.
    """
    return board_of(method_runs(cases, methods, settings, progress))


def method_runs(
    cases: Iterable[Case],
    methods: Mapping[str, Method] = METHODS,
    settings: Mapping[str, Setting] = {"default": Setting()},
    progress: Report | None = None,
) -> Iterator[MethodRun]:
    """Every method on every case in every setting; `board_of` and `edge_scores` make tables of them."""
    expect(settings, Mapping, "Settings come by name: {'default': Setting()}")
    known = list(cases)
    total, done = len(known) * len(settings) * len(methods), 0
    for case in known:
        asked_under = cache(case.problem)
        given: dict[tuple[str, Protocol], tuple[Scores, float]] = {}
        for setting_name, setting in settings.items():
            expect(setting, Setting, "Each setting is a Setting(Protocol(...), Scoring(...))")
            problem = asked_under(setting.protocol)
            for name, method in methods.items():
                if progress is not None:
                    progress(f"{case.program}, {case.kind}: {name}", done, total)
                if (name, setting.protocol) not in given:
                    began = time.perf_counter()
                    try:
                        scores = method(problem)
                    except RaspLensError as error:
                        raise RaspLensError(f"{name}, on {case.program}, {case.kind}: {error}") from error
                    given[name, setting.protocol] = scores, time.perf_counter() - began
                yield MethodRun(case, setting_name, setting, name, problem, *given[name, setting.protocol])
                done += 1


def board_of(runs: Iterable[MethodRun]) -> pd.DataFrame:
    """One row for each run: how its scores do."""
    rows: list[dict[str, object]] = []
    for run in runs:
        known_edges = run.case.truth(run.setting), run.case.decoys, run.case.unknown(run.setting)
        found = score_edges(run.problem, run.scores, *known_edges, run.setting.scoring)
        rows.append(
            {**_names(run), "metric": run.problem.protocol.metric, **asdict(found), "method_seconds": run.seconds}
        )
    return pd.DataFrame(rows)


def edge_scores(runs: Iterable[MethodRun]) -> pd.DataFrame:
    """One row for each edge of each run: its score, and whether it is in the circuit.

    So another measure needs no other run. `label` is `"circuit"` or `"outside"`, `"decoy"` at a decoy, `"unknown"`
    where the truth is not known.
    """
    parts = []
    for run in runs:
        graph = run.problem.graph
        label = np.full(len(graph.edges), "outside", dtype=object)
        label[graph.touching(run.case.decoys)] = "decoy"
        label[graph.mask_of(run.case.truth(run.setting))] = "circuit"
        label[graph.mask_of(run.case.unknown(run.setting))] = "unknown"
        parts.append(pd.DataFrame({**_names(run), "edge": graph.edges, "score": run.scores, "label": label}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=EDGE_COLUMNS)


def _names(run: MethodRun) -> dict[str, str]:
    """The columns that name a run."""
    return {
        "program": run.case.program,
        "kind": run.case.kind,
        "setting": run.setting_name,
        "method": run.method,
    }


def medians(found: pd.DataFrame, measure: str, by: list[str], seed: int = 0) -> pd.DataFrame:
    """The median of a measure over programs, with a 95 % bootstrap interval (percentiles) over them.

    Of several models of a program the median counts: they are not independent of each other.
    """
    rows = []
    for names, group in found.groupby(by, sort=False):
        values = group.groupby("program")[measure].median().dropna().to_numpy(dtype=float)
        low = high = float("nan")
        if len(values) > 1:
            drawn = bootstrap(
                (values,), np.median, method="percentile", n_resamples=2_000, rng=np.random.default_rng(seed)
            )
            low, high = drawn.confidence_interval
        middle = float(np.median(values)) if len(values) else float("nan")
        rows.append(
            {**dict(zip(by, names, strict=True)), "median": middle, "low": low, "high": high, "n": len(values)}
        )
    return pd.DataFrame(rows)
