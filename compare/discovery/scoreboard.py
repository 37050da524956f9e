"""The board: every method on every model whose circuit is known, in every setting."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

from rasplens.compare.discovery.cases import Case
from rasplens.compare.discovery.methods.catalogue import METHODS, Method
from rasplens.compare.discovery.problem import Scores
from rasplens.compare.discovery.protocol import Protocol, Setting
from rasplens.compare.discovery.scoring import score_edges
from rasplens.errors import RaspLensError, expect

Report = Callable[[str, int, int], None]
"""Progress callback, called with the task at hand, the steps done, and the steps in all."""


def board(
    cases: Iterable[Case],
    methods: Mapping[str, Method] = METHODS,
    settings: Mapping[str, Setting] = {"default": Setting()},
    progress: Report | None = None,
) -> pd.DataFrame:
    """One row for each case, setting and method: see `MethodScore`, and its seconds, compilation included.

    Settings that differ in the scoring alone share a method's scores.
    """
    expect(settings, Mapping, "Settings come by name: {'default': Setting()}")
    known = list(cases)
    rows: list[dict[str, object]] = []
    total = len(known) * len(settings) * len(methods)
    for case in known:
        asked_under = cache(case.problem)
        given: dict[tuple[str, Protocol], tuple[Scores, float]] = {}
        for setting_name, setting in settings.items():
            expect(setting, Setting, "Each setting is a Setting(Protocol(...), Scoring(...))")
            protocol, scoring = setting.protocol, setting.scoring
            problem = asked_under(protocol)
            for name, method in methods.items():
                if progress is not None:
                    progress(f"{case.program}, {case.kind}: {name}", len(rows), total)
                if (name, protocol) not in given:
                    began = time.perf_counter()
                    try:
                        scores = method(problem)
                    except RaspLensError as error:
                        raise RaspLensError(f"{name}, on {case.program}, {case.kind}: {error}") from error
                    given[name, protocol] = scores, time.perf_counter() - began
                scores, seconds = given[name, protocol]
                known_edges = case.truth(setting), case.decoys, case.unknown(setting)
                found = score_edges(problem, scores, *known_edges, scoring)
                rows.append(
                    {
                        "program": case.program,
                        "kind": case.kind,
                        "setting": setting_name,
                        "method": name,
                        "metric": problem.protocol.metric,
                        **asdict(found),
                        "method_seconds": seconds,
                    }
                )
    return pd.DataFrame(rows)


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
