from dataclasses import replace

import pandas as pd
import pytest

from rasplens.compare.report.sentences import p_value, percent, quoted, table


@pytest.mark.parametrize(
    ("value", "words"), [(0.0004, "p < 0.001"), (0.001, "p = 0.001"), (0.0312, "p = 0.031"), (1.0, "p = 1.000")]
)
def test_p_values(value, words):
    assert p_value(value) == words


def test_names_and_shares():
    assert quoted(["a", "b"]) == "'a', 'b'"
    assert quoted([]) == ""
    assert percent(0.123) == "12.3 %"


def test_a_table_that_is_not_there_is_empty(one_head):
    frame = pd.DataFrame({"x": [1]})
    comparison = replace(one_head, tables={"there": frame})
    assert table(comparison, "there") is frame
    assert table(comparison, "not there").empty
