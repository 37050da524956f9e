from dataclasses import replace

import pandas as pd

from rasplens.compare.report.figures.labels import head_names, position_names, short_point


def test_heads_and_points_are_short():
    assert head_names(pd.DataFrame({"layer": [0, 1], "head": [3, 0]})) == ["L0H3", "L1H0"]
    assert short_point("blocks.2.hook_resid_post") == "2 resid_post"
    assert short_point("blocks.0.attn.hook_z") == "0.attn z"


def test_positions_have_the_names_of_the_task_also_without_the_models(one_head):
    assert position_names(one_head) == one_head.pairing.task.positions
    assert position_names(replace(one_head, pairing=None)) == one_head.pairing.task.positions
    assert position_names(replace(one_head, pairing=None, tables={})) == ()
