"""The tables of the board and of the error rates of circuit tests."""

import importlib

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def load():
    return lambda name: importlib.import_module(f"lab.{name}")


def row(method, kind, setting="default", auroc=0.9, program="sort"):
    measures = {"average_precision": 0.5, "base_rate": 0.1, "cpr": 0.8, "cmd": 0.2, "decoys": 1.0}
    measures["n_edges"] = 20 if program == "count" else 50
    names = {
        "program": program,
        "name": program,
        "kind": kind,
        "made": kind,
        "setting": setting,
        "method": method,
    }
    return {**names, "auroc": auroc, **measures, "method_seconds": 1.5, "error": None}


def test_the_board_s_tables(load):
    methods = load("methods")
    rows = [
        row(method, kind, setting, auroc, program)
        for method, auroc in (
            ("exact", 1.0),
            ("acdc", 0.95),
            ("eap", 0.7),
            ("eap-ig-inputs", 0.9),
            ("edge-pruning", 0.8),
        )
        for kind in ("compiled", "siit")
        for setting in ("default", "zero ablation", "loss", "loss, signed", "its edges")
        for program in ("sort", "count")
    ]
    rows.append({"name": "slots", "made": "compressed", "method": None, "error": None, "left_out": "Too narrow"})
    text = methods.tables(pd.DataFrame(rows), 0, is_published=False)
    assert "### 2 programs, 4 models\n\nAverage precision:" in text
    assert text.index("| `eap` | 0.500 [0.50, 0.50]") < text.index("### AUROC") < text.index("| `eap` | 0.700 [")
    assert "| `eap` | 0.700 [0.70, 0.70] | 0.700 [0.70, 0.70] |" in text
    assert "0.959" not in text
    beside = methods.tables(pd.DataFrame(rows), 0, is_published=True)
    assert "| `acdc` | 0.959 | 0.950 [0.95, 0.95] | 0.950 [0.95, 0.95] | – | – |" in beside
    several = beside.partition(
        "### Beside published figures: median AUROC, 1 programs, circuits of several nodes"
    )[2]
    assert "| `acdc` | 0.959 | 0.950 [nan, nan] | 0.950 [nan, nan] | – | – |" in several
    assert "| zero ablation | 1.000 [1.00, 1.00] | 0.700 [0.70, 0.70] | 0.900 [0.90, 0.90] |" in text
    assert "| slots, compressed | Too narrow |" in text
    figure = methods.signs(pd.DataFrame(rows))
    assert {trace.name for trace in figure.data} == {"by size", "with its sign"}


def test_the_board_shows_what_a_floor_does(load):
    """A method whose scores are rounding falls with the floor; of curves alone there is no average precision."""
    methods = load("methods")
    names = dict.fromkeys([*methods.FLOORS, "default", "loss", "loss, stairs"])
    rows = [
        row(method, "compiled", setting, 1.0 if method == "exact" or setting == "floor 0" else 0.6, program)
        for method in methods.TOLD_APART
        for setting in names
        for program in ("sort", "count")
    ]
    text = methods.tables(pd.DataFrame(rows), 0, is_published=False)
    assert "| method | floor 0 | floor 1e-09 | floor 1e-06 | floor 0.001 |" in text
    assert "| `eap` | 0.500, 1.000 | 0.500, 0.600 | 0.500, 0.600 | 0.500, 0.600 |" in text
    assert "| `exact` | 0.500, 1.000 | 0.500, 1.000 |" in text
    precision, _, area = text.partition("### Other settings: median AUROC over all models")
    assert "| loss, stairs |" in area
    assert "| loss, stairs |" not in precision
    assert "| floor 0 | " not in area


def test_each_model_has_a_row_and_its_intervals(load):
    ends = {f"{measure}_{end}": np.nan for measure in ("auroc", "average_precision") for end in ("low", "high")}
    rows = [
        row("exact", "siit", program="sort") | ends,
        row("eap", "siit", program="sort", auroc=0.7) | ends | {"auroc_low": 0.61, "auroc_high": 0.84},
        row("exact", "siit", setting="loss") | ends,
        row("exact", "siit", program="count", auroc=np.nan) | ends,
        row("eap", "siit", program="count") | ends,
    ]
    headings, found = load("methods").each_model(pd.DataFrame(rows))
    assert headings == ["measure", "program", "kind", "exact", "eap"]
    assert ["AUROC", "sort", "siit", "0.90", "0.70 [0.61, 0.84]"] in found
    assert ["AUROC", "count", "siit", "–", "0.90"] in found
    assert [row[0] for row in found] == ["average precision"] * 2 + ["AUROC"] * 2


def test_the_table_of_variables_counts_a_model_once(load):
    variables = load("variables")
    measures = {"used": 1.0, "sites": 0.5, "method_seconds": 1.0, "error": None}
    rows = [
        {
            "program": program, "name": program, "kind": "siit", "made": "siit", "variable": variable,
            "method": "probe", "interchange": reached, **measures,
        }
        for program, variable, reached in (("sort", "one", 0.2), ("sort", "two", 0.4), ("count", "one", 0.5))
    ]  # fmt: skip
    rows.append({"name": "length", "made": "siit", "method": None, "error": None, "left_out": "none"})
    text = variables.tables(pd.DataFrame(rows), 0)
    assert "2 programs, 3 variables, 2 models." in text
    assert "| `probe` | 0.400 [0.30, 0.50] |" in text  # the median of .3 and .5
    assert "| length, siit | none |" in text


def test_error_rates_have_exact_intervals(load):
    benchmark = load("circuit_tests")
    p = {
        f"{kind} {name}": [0.01 if kind == "power" else 0.5] * 20
        for name in (criterion.name for criterion in benchmark.tests.CRITERIA)
        for kind in ("null", "power")
    }
    found = pd.DataFrame(p).assign(name="count", error=None)
    found.loc[0, "null sufficiency"] = 0.05
    found.loc[1:, "power independence"] = np.nan
    text = benchmark.summary(found)
    assert "| sufficiency | 0.050 [0.001, 0.249], 20 | 1.000 [0.832, 1.000], 20 |" in text
    assert "| independence | 0.000 [0.000, 0.168], 20 | 1.000 [0.025, 1.000], 1 |" in text


def test_siit_s_table_of_training(load):
    base = {"nodes": 2, "behaviour": 1.0, "interchange": 0.98, "strict": 1.0, "changed": np.nan, "error": None}
    base |= {"within": 0.5, "threads": 2, "tested": 2}
    rows = [
        {"name": "a", **base, "training": 90.0},
        {"name": "b", **base, "interchange": 0.995, "training": 80.0},
        {"name": "e", **base, "interchange": 0.995, "within": 1.0, "changed": 0.9, "training": 70.0},
        {"name": "f", **base, "interchange": 1.0, "within": np.nan, "tested": 0, "training": 60.0},
        {"name": "g", **base, "interchange": 1.0, "within": 1.0, "tested": 1, "training": 60.0},
        {"name": "c", "left_out": "No answers", "error": None},
        {"name": "d", "error": "KeyError: 1"},
    ]
    text = load("siit").training_summary(pd.DataFrame(rows))
    assert text.startswith("2 of 5 programs reach all marks; median 70 s a model (threads of each: 2)")
    assert "| f | 0 of 2 | **1.0000** | – | **1.0000** | – | – | 60 |" in text
    assert "| g | 1 of 2 | **1.0000** | **1.0000** |" in text
    assert "| a | 2 of 2 | **1.0000** | 0.9800 | **1.0000** | 0.5000 | – | 90 |" in text
    assert "`c` is left out: No answers." in text
    assert "`d` is left out: KeyError: 1." in text


def test_siit_s_table_of_verdicts(load):
    said = [("a", "partly", "implements", True), ("b", "implements", "implements", True)]
    said += [("e", "does not", "partly", True), ("f", "does not", "not testable", False)]
    rows = [
        {
            "name": name, "verdict": verdict, "answers": "implements", "variables": variables, "routes": "partly",
            "testable": testable, "error": None,
        }
        for name, verdict, variables, testable in said
    ]  # fmt: skip
    rows.append({"name": "d", "error": "KeyError: 1"})
    text = load("siit").verdict_summary(pd.DataFrame(rows))
    assert text.startswith(
        "The variables of 3 programs can be tested on the compiled model itself: 2 of these models"
    )
    assert "1 not to implement the program; of all 4, 2 are." in text
    assert "| a | partly | implements | implements | partly |" in text
    assert "`d` is left out: KeyError: 1." in text
