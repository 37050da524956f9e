"""The worked input of a report: everybody's answers, and the layout in words."""

from dataclasses import replace

import pandas as pd
import pytest

from rasplens.compare.evidence.examples import N_EXAMPLES, NOTHING, examples_table
from rasplens.compare.report.worked_input import ranges, worked_input


def test_examples_hold_the_answers_of_task_and_models(floor):
    pairing, table = floor.pairing, examples_table(floor.pairing)
    task = pairing.task
    pd.testing.assert_frame_equal(table, floor.tables["examples"])
    assert len(table) == N_EXAMPLES * task.n_ctx
    second = table[table["input"] == 2]
    assert list(second["token"]) == [task.token_names[i] for i in pairing.ids[1]]
    target, said = task.target(pairing.ids)[1], pairing.learned.answers()[1]
    asked = dict(zip(task.loss_positions, zip(target, said, strict=True), strict=True))
    for position, row in enumerate(second.itertuples()):
        right, learned = (
            (str(task.outputs[code]) for code in asked[position]) if position in asked else (NOTHING, NOTHING)
        )
        assert (row.right, row.learned) == (right, learned)


def test_wrong_answers_are_marked_and_nothing_else(floor):
    shown = worked_input(floor)
    first = floor.tables["examples"].query("input == 1")
    assert shown.positions == tuple(first["position"])
    by_title = {line.title: line.said for line in shown.lines}
    assert list(by_title) == ["input", "right answer", "compiled program", "learned model"]
    assert [one.text for one in by_title["input"]] == list(first["token"])
    assert not any(one.is_wrong for one in by_title["input"] + by_title["right answer"])
    wrong = [one.is_wrong for one in by_title["learned model"]]
    assert wrong == list(first["learned"] != first["right"])
    assert any(wrong)  # an untrained model


def test_a_comparison_without_examples_has_none(floor):
    assert worked_input(replace(floor, tables={})) is None


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["BOS", "a1", "a2", "a3", "MID", "b1", "b2"], "BOS, a1 to a3, MID, b1, b2"),
        (["0", "1", "2", "4", "5"], "0 to 2, 4, 5"),
        (["x"], "x"),
        (["a2", "a1"], "a2, a1"),
    ],
)
def test_names_that_follow_each_other_are_a_range(names, said):
    assert ranges(names) == said
