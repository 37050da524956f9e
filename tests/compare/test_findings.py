from dataclasses import replace

import pytest

from rasplens.compare import compare
from rasplens.compare.findings import best_points, findings


@pytest.fixture(scope="module")
def ceiling(induction, task):
    return compare(induction, induction, task=task, n_inputs=300)


@pytest.fixture(scope="module")
def floor(offset, noise, task):
    return compare(offset, noise, task=task, n_inputs=60)


def test_every_sentence_has_the_numbers_it_comes_from(ceiling):
    behaviour, subspaces, attention, ablation, caution = findings(ceiling)
    accuracy = ceiling.accuracies["learned"]
    assert f"gets {100 * accuracy.token:.1f} % of the answers right" in behaviour
    assert "same answer in 100.0 % of the cases" in behaviour
    assert "'induction' at blocks.1.hook_resid_post (accuracy 1.00, best control" in subspaces
    assert "The compiled head for 'induction' is matched with the learned L1H0: similarity 1.00 of 1" in attention
    assert "correlates at rank 1.00 between the models" in ablation
    assert "not a verdict" in caution


def test_what_the_controls_explain_is_said(floor):
    _, subspaces, attention, ablation, _ = findings(floor)
    assert "None of the program's 2 varying variables" in subspaces
    assert "0.00 is due to content" in attention
    assert "Under mean ablation one of the edge profiles is flat: no correlation exists." in ablation


def test_empty_tables_are_said_to_be_empty(floor):
    nothing = replace(floor, decodability=floor.decodability.iloc[:0], attention=floor.attention.iloc[:0])
    _, subspaces, attention, _, _ = findings(nothing)
    assert "there is nothing to decode" in subspaces
    assert "there is no attention to compare" in attention


def test_heads_without_a_match_are_named(floor):
    attention = floor.attention.assign(matched=False)
    assert "The learned model has no head left for 'offset'." in findings(replace(floor, attention=attention))[2]


def test_the_best_point_is_the_one_highest_above_its_controls(ceiling):
    best = best_points(ceiling).set_index("variable")
    assert best.loc["induction", "point"] == "blocks.1.hook_resid_post"
    assert best.loc["previous", "point"] in ("blocks.0.hook_resid_post", "blocks.1.hook_resid_post")
