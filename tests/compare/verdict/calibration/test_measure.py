"""Measures of verdicts on labelled pairs, on tables computable by hand."""

import pandas as pd
import pytest

from rasplens.compare.verdict.calibration.circuits import CIRCUITS, NOT_TOLD_APART
from rasplens.compare.verdict.calibration.measure import by_group, is_told_apart, measures

ROWS = [
    ("copy", "itself", True, "implements"),
    ("copy", "disguised", True, "cannot tell"),
    ("copy", "alternative, itself", False, "does not"),
    ("copy", "untrained", False, "implements"),
    ("repeated", "untrained", False, "does not"),
    ("repeated", "alternative, itself", False, "implements"),
]


@pytest.fixture
def table():
    return pd.DataFrame(ROWS, columns=["circuit", "model", "same", "verdict"]).assign(family="plain")


def test_measures_are_shares_of_what_can_be_told_apart(table):
    measured = measures(table)
    assert (measured["same"], measured["different"]) == (2, 3)
    assert measured["false_implements"] == pytest.approx(1 / 3)
    assert measured["false_implements_most"] == pytest.approx(0.9057, abs=1e-4)  # Clopper-Pearson, 1 of 3
    assert (measured["recognised"], measured["false_does_not"]) == (0.5, 0)
    assert measured["cannot_tell"] == pytest.approx(1 / 5)


def test_only_the_alternative_of_a_circuit_is_not_told_apart(table):
    assert is_told_apart(table).tolist() == [True] * 5 + [False]
    assert set(NOT_TOLD_APART) <= set(CIRCUITS)


def test_verdicts_are_counted_by_group(table):
    counts = by_group(table, ["family", "same"])
    assert counts.set_index("same")["implements"].to_dict() == {True: 1, False: 2}
