import json

import pytest

from rasplens import __version__
from rasplens.compare import compare


@pytest.fixture(scope="module")
def comparison(offset, noise, task):
    return compare(offset, noise, task=task, n_inputs=60)


def test_json_holds_every_table_and_only_plain_values(comparison):
    values = json.loads(comparison.to_json())
    assert values["rasplens"] == __version__
    assert set(values["tables"]) == set(comparison.tables)
    assert len(values["tables"]["decodability"]) == len(comparison.decodability)
    assert values["tables"]["attention"][0]["variable"] == "offset"
    assert values["accuracies"]["compiled"] == {"token": 1.0, "sequence": 1.0}
    assert values["correlations"]["mean"] is None  # the compiled profile is flat under mean ablation
    assert values["findings"] == comparison.findings


def test_it_is_written_to_one_file(comparison, tmp_path):
    comparison.save(tmp_path / "c.json")
    assert (tmp_path / "c.json").read_text() == comparison.to_json()
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


def test_averages_keep_the_order_of_the_program(comparison):
    table = comparison.decodability_by_point()
    assert list(dict.fromkeys(table["variable"])) == ["tokens", "offset"]
    row = table[(table["variable"] == "offset") & (table["point"] == "blocks.0.hook_resid_post")]
    rows = comparison.decodability.query("variable == 'offset' and point == 'blocks.0.hook_resid_post'")
    assert row["score"].item() == pytest.approx(rows["score"].mean())
