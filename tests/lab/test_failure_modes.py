"""The table of failure modes: which models it takes, what counts as high, and that a job measures all of it."""

import numpy as np
import pandas as pd
import pytest

from lab.failure_modes import MODES, measured, mode_of, summary
from lab.labelled.circuits import HARD
from lab.labelled.hidden_mechanisms import hidden_pairs
from lab.labelled.labelled_pairs import exact_pairs
from rasplens.compare.axes import AXES


def test_every_mode_is_one_that_pairs_have():
    circuit = HARD["any"]
    pairs = [*exact_pairs(circuit, 0), *hidden_pairs(circuit, 0)]
    found = {(mode_of(one), one.same) for one in pairs} - {(None, True), (None, False)}
    assert {mode for mode, _ in found} == set(MODES.values())
    decided = {mode for mode, same in found if same}
    assert decided == set(list(MODES.values())[:4])  # as the page says of the first columns
    assert not decided & {mode for mode, same in found if not same}


def test_a_measure_is_high_from_its_threshold_on_and_models_without_it_do_not_count():
    rows = [
        {"mode": "alone", "behaviour": 0.75, "claims: routes": 1.0, "verdict": "implements"},
        {"mode": "alone", "behaviour": 0.74, "claims: routes": np.nan, "verdict": "cannot tell"},
        {"mode": "gate", "behaviour": 1.0, "claims: routes": 0.0, "verdict": "does not"},
    ]
    frame = pd.DataFrame([{"circuit": "any", **dict.fromkeys(AXES, np.nan), **row} for row in rows])
    text = summary(frame, "quick")
    assert "3 models of 1 circuits" in text
    assert "| `behaviour` | 0.50 | 1.00 |" in text
    assert "| `claims: routes` | 1.00 of 1 | 0.00 |" in text
    assert "| `verdict` | 0.50 | 0.00 |" in text
    assert "ablation" not in text  # no model has it


@pytest.mark.slow
def test_the_verdict_notices_what_axes_do_not():
    """A faint copy attends as the program does: the axes of answers and attention stay high."""
    found = pd.DataFrame(measured("any", "quick", 0))
    faint = found[found["mode"] == "faint copy, 0.1 %"]
    assert (faint["behaviour"] == 1).all()
    assert (faint["attention"] > 0.75).all()
    assert "implements" not in set(faint["verdict"])
    assert set(found[found["mode"] == "alone"]["verdict"]) == {"implements"}
