"""What verdicts come to on labelled pairs."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from lab.labelled import measure
from lab.labelled.circuits import CIRCUITS, HARD, NOT_TOLD_APART
from lab.labelled.labelled_pairs import LabelledPair
from lab.labelled.measure import (
    by_group,
    calibrate,
    is_told_apart,
    measures,
    observe,
    same_variables,
)
from rasplens.compare import CompareConfig
from rasplens.compare.subject.vocabulary import task_vocabulary, vocabulary_of
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY, UNKNOWN
from rasplens.learned import Architecture, untrained
from rasplens.tasks import compile_for, get_task

FEW = CompareConfig(
    n_inputs=96, n_fitting=200, relevance_inputs=24, questions=60, questions_tried=900, interchange_pairs=50,
    das_steps=0, random_subspaces=2,
)  # fmt: skip

COLUMNS = (
    "circuit", "program", "model", "same", "verdict", "answers", "variables", "routes", "least_claim",
    "least_score", "reasons", "claims",
)  # fmt: skip


@pytest.fixture(scope="module")
def labelled():
    task = get_task("copy", n_letters=8, block=3, length=9)
    induction, offset = (compile_for(task, task.programs[name]) for name in ("induction", "offset"))
    noise = untrained(Architecture(n_layers=2, n_heads=2, d_model=12, d_head=6), task, seed=7)
    names, both = ("copy", "induction"), (induction, offset)
    return [
        LabelledPair(*names, "itself", True, *both, induction, task, vocabulary_of(induction, task)),
        LabelledPair(*names, "untrained", False, *both, noise, task, task_vocabulary(task)),
    ]


@pytest.mark.slow
def test_a_labelled_pair_is_a_row(labelled):
    same, different = (observe(one, 0, FEW) for one in labelled)
    assert tuple(same) == tuple(different) == COLUMNS
    assert (same["verdict"], same["same"], same["least_score"]) == (IMPLEMENTS, True, 1.0)
    assert same["least_claim"]
    assert (different["verdict"], different["answers"], different["least_claim"]) == (NOT, NOT, "")
    assert np.isnan(different["least_score"])
    assert "answers" in different["reasons"]


def test_calibration_observes_every_labelled_pair(labelled, monkeypatch):
    monkeypatch.setattr(measure, "observe", lambda one, seed, config: {"model": one.kind, "seed": seed})
    seen = []
    circuits = CIRCUITS["copy"], CIRCUITS["shift"]
    table = calibrate(
        circuits, 3, FEW, lambda what, done: seen.append((what, done)), pairs=lambda circuit, seed: labelled
    )
    assert table["family"].tolist() == ["plain"] * 4
    assert table["model"].tolist() == ["itself", "untrained"] * 2
    assert (table["seed"] == 3).all()
    assert (table["family"] == "plain").all()
    assert [done for _, done in seen] == [0, 1, 2, 3]
    assert seen[0][0] == "induction: itself"


def table():
    same = [IMPLEMENTS] * 7 + [UNKNOWN] * 2 + [NOT]
    different = [NOT] * 15 + [PARTLY] * 3 + [UNKNOWN] + [IMPLEMENTS]
    rows = [("a", "itself", True, one) for one in same] + [("b", "untrained", False, one) for one in different]
    return pd.DataFrame(rows, columns=["program", "model", "same", "verdict"])


def test_measures_by_hand():
    found = measures(table())
    assert (found["same"], found["different"]) == (10, 20)
    assert found["false_implements"] == 1 / 20
    assert found["false_implements_most"] == pytest.approx(beta.ppf(0.975, 2, 19), abs=1e-6)
    assert (found["recognised"], found["false_does_not"]) == (0.7, 0.1)
    assert found["cannot_tell"] == 3 / 30


def test_models_by_siit_count_where_the_compiled_model_s_own_variables_can_be_tested():
    columns = ["circuit", "program", "model", "verdict", "variables"]
    rows = [
        ("c", "a", "itself", IMPLEMENTS, IMPLEMENTS),
        ("c", "a", "siit", PARTLY, IMPLEMENTS),  # by other routes
        ("c", "a", "alternative, siit", IMPLEMENTS, IMPLEMENTS),
        ("c", "b", "itself", IMPLEMENTS, "not testable"),
        ("c", "b", "siit", NOT, "not testable"),
        ("d", "a", "itself", IMPLEMENTS, PARTLY),
        ("d", "a", "siit, not known", NOT, NOT),
        ("e", "a", "itself", IMPLEMENTS, IMPLEMENTS),
        ("e", "a", "siit", IMPLEMENTS, "not testable"),
        ("f", "a", "itself", IMPLEMENTS, IMPLEMENTS),
        ("f", "a", "siit", NOT, NOT),
        ("g", "a", "itself", IMPLEMENTS, IMPLEMENTS),
        ("g", "a", "siit", PARTLY, UNKNOWN),
    ]
    found = same_variables(pd.DataFrame(rows, columns=columns))
    assert found == {"models": 4, "recognised": 0.5, "false_does_not": 0.25}
    none = same_variables(pd.DataFrame(rows[3:5], columns=columns))
    assert none["models"] == 0
    assert np.isnan(none["recognised"])


def test_models_that_are_neither_count_as_neither():
    neither = pd.DataFrame([("c", "narrow", None, IMPLEMENTS)], columns=["program", "model", "same", "verdict"])
    found = measures(pd.concat([table(), neither]))
    assert (found["same"], found["different"], found["recognised"]) == (10, 20, 0.7)
    nothing = measures(table()[:10])
    assert (nothing["different"], nothing["false_implements"]) == (0, 0)
    assert np.isnan(nothing["false_implements_most"])


def test_verdicts_are_counted_by_group():
    found = by_group(table(), ["program"]).set_index("program")
    assert found.loc["a"].to_dict() == {IMPLEMENTS: 7, UNKNOWN: 2, NOT: 1, PARTLY: 0}
    assert found.loc["b"].to_dict() == {IMPLEMENTS: 1, UNKNOWN: 1, NOT: 15, PARTLY: 3}


ROWS = [
    ("copy", "itself", True, "implements"),
    ("copy", "disguised", True, "cannot tell"),
    ("copy", "alternative, itself", False, "does not"),
    ("copy", "untrained", False, "implements"),
    ("share_of_own", "untrained", False, "does not"),
    ("share_of_own", "alternative, itself", False, "implements"),
]


@pytest.fixture
def told_table():
    return pd.DataFrame(ROWS, columns=["program", "model", "same", "verdict"]).assign(family="plain")


def test_measures_are_shares_of_what_can_be_told_apart(told_table):
    measured = measures(told_table)
    assert (measured["same"], measured["different"]) == (2, 3)
    assert measured["false_implements"] == pytest.approx(1 / 3)
    assert measured["false_implements_most"] == pytest.approx(0.9057, abs=1e-4)  # Clopper-Pearson, 1 of 3
    assert (measured["recognised"], measured["false_does_not"]) == (0.5, 0)
    assert measured["cannot_tell"] == pytest.approx(1 / 5)


def test_nor_is_a_model_in_which_the_alternative_decides(told_table):
    rows = [
        ("share_of_own", "hidden, 1.0% of the logits", False, "implements"),
        ("share_of_own", "hidden, 90.0% of the logits", True, "implements"),
        ("copy", "hidden, 1.0% of the logits", False, "does not"),
    ]
    table = pd.DataFrame(rows, columns=["program", "model", "same", "verdict"])
    assert is_told_apart(table).tolist() == [False, True, True]


def test_only_the_alternative_of_a_circuit_is_not_told_apart(told_table):
    assert is_told_apart(told_table).tolist() == [True] * 5 + [False]
    circuits = (*CIRCUITS.values(), *HARD.values())
    named = {build().name for one in circuits for build in (one.program, one.alternative)}
    assert set(NOT_TOLD_APART) <= named


def test_verdicts_are_counted_by_family_and_truth(told_table):
    counts = by_group(told_table, ["family", "same"])
    assert counts.set_index("same")["implements"].to_dict() == {True: 1, False: 2}
