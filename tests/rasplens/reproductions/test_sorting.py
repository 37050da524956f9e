from dataclasses import replace

import numpy as np
import pytest

from rasplens.learned import load_pretrained
from rasplens.reproductions.sorting import SORT
from rasplens.tasks import get_task


@pytest.fixture(scope="module")
def task():
    return get_task("sort")


@pytest.fixture(scope="module")
def sorter():
    return load_pretrained("sort").transformer


@pytest.mark.slow
def test_a_model_whose_logits_are_turned_round_has_none_of_the_findings_about_the_ov_circuit(task, sorter):
    """The negative control: what it attends to is as it was, and what it says of it is the opposite."""
    weights = {**sorter.weights, "unembed.W_U": -sorter.W_U}
    turned = replace(sorter, weights=weights)
    ours = {row.measure: row for row in SORT.findings(task, sorter)}
    theirs = {row.measure: row for row in SORT.findings(task, turned)}
    accuracy, copies, keys = list(ours)[:3]
    assert (ours[accuracy].holds, theirs[accuracy].holds) == (True, False)
    assert (ours[copies].holds, theirs[copies].holds) == (True, False)
    assert ours[keys] == theirs[keys]


def test_the_figures_show_every_term_of_the_score_and_the_ov_circuit(task, sorter):
    figures = SORT.figures(task, sorter)
    shapes = [np.shape(trace.z) for trace in figures["score_terms"].data]
    n, ctx = len(task.vocab), task.n_ctx
    assert shapes == [(n, n), (n, ctx), (ctx, n), (ctx, ctx)]
    assert [np.shape(trace.z) for trace in figures["ov_circuit"].data] == [(n, len(task.outputs))]
