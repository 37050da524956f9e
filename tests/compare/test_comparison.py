import json

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from mutations import damaged, forged

from rasplens import __version__
from rasplens.compare import Comparison, write_report
from rasplens.compare.axes import AXES
from rasplens.compare.comparison import FORMAT, plain
from rasplens.compare.verdict.headline import headline
from rasplens.model.storage import StorageError, checksum


@pytest.fixture(scope="module")
def comparison(one_head):
    return one_head


def test_json_holds_every_table_and_only_plain_values(comparison):
    values = json.loads(comparison.to_json())
    assert values["rasplens"] == __version__
    assert set(values["tables"]) == set(comparison.tables)
    assert len(values["tables"]["decodability"]["rows"]) == len(comparison.tables["decodability"])
    assert values["tables"]["attention"]["rows"][0]["variable"] == "offset"
    assert values["accuracies"]["compiled"] == {"token": 1.0, "sequence": 1.0}
    assert values["correlations"]["mean"] is None  # the compiled profile is flat under mean ablation
    assert values["verdict"]["answer"] == comparison.verdict.answer
    assert [axis["name"] for axis in values["axes"]] == list(AXES)
    assert values["axes"][1]["score"] is None  # no variable between input and output
    assert values["findings"] == list(comparison.findings)


def test_it_is_written_to_one_file(comparison, tmp_path):
    comparison.save(tmp_path / "c.json")
    assert (tmp_path / "c.json").read_text() == comparison.to_json()
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


def test_what_was_saved_is_loaded(comparison, tmp_path):
    comparison.save(tmp_path / "c.json")
    loaded = Comparison.load(tmp_path / "c.json")
    assert loaded.pairing is None
    assert comparison.pairing is not None
    for name in ("task", "program", "learned_origin", "n_inputs", "seed", "accuracies", "overlaps"):
        assert getattr(loaded, name) == getattr(comparison, name)
    assert loaded.correlations == comparison.correlations
    assert [axis.to_dict() for axis in loaded.axes] == [axis.to_dict() for axis in comparison.axes]
    pd.testing.assert_frame_equal(loaded.verdict.claims, comparison.verdict.claims)
    assert loaded.verdict.levels == comparison.verdict.levels
    assert loaded.verdict.reasons == comparison.verdict.reasons
    assert str(loaded.verdict) == str(comparison.verdict)
    assert loaded.rank == comparison.rank
    for name, table in comparison.tables.items():
        if len(table):
            pd.testing.assert_frame_equal(loaded.tables[name], table, check_dtype=False, rtol=0, atol=0)


def test_a_loaded_comparison_says_and_writes_the_same(comparison, tmp_path):
    comparison.save(tmp_path / "c.json")
    loaded = Comparison.load(tmp_path / "c.json")
    assert loaded.to_json() == comparison.to_json()
    assert loaded.findings == comparison.findings
    assert loaded._repr_html_() == comparison._repr_html_()
    pd.testing.assert_frame_equal(loaded.decodability_by_point(), comparison.decodability_by_point())


def test_empty_tables_keep_their_columns_when_loaded(comparison, tmp_path):
    comparison.save(tmp_path / "c.json")
    loaded = Comparison.load(tmp_path / "c.json")
    assert comparison.tables["interchange"].empty
    assert list(loaded.tables["interchange"]) == list(comparison.tables["interchange"])


@pytest.mark.parametrize("text", ["{}", "[1]", "no JSON", '{"verdict": {"reasons": []}}'])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(StorageError, match=r"c\.json.*comparison"):
        Comparison.load(tmp_path / "c.json")


def test_a_comparison_with_other_tables_is_refused_when_it_is_read(comparison):
    older = {**comparison.to_dict(), "format": 1}
    with pytest.raises(ValueError, match=f"format is 1, not {FORMAT}"):
        Comparison.from_dict(older)


def test_averages_keep_the_order_of_the_program(comparison):
    table = comparison.decodability_by_point()
    assert list(dict.fromkeys(table["variable"])) == ["tokens", "offset"]
    row = table[(table["variable"] == "offset") & (table["point"] == "blocks.0.hook_resid_post")]
    rows = comparison.tables["decodability"].query("variable == 'offset' and point == 'blocks.0.hook_resid_post'")
    assert row["score"].item() == pytest.approx(rows["score"].mean())


def test_tables_come_by_name_and_by_side(comparison):
    assert set(Comparison.ALWAYS) <= set(comparison.tables)
    for name, table in comparison.tables.items():
        assert len(table) or name in Comparison.ALWAYS
    assert "neurons_learned" not in comparison.tables  # it has none
    heads = comparison.by_side("heads")
    assert list(heads) == ["compiled", "learned"]
    assert len(heads["compiled"]) == 1
    assert len(heads["learned"]) == 4
    assert list(comparison.by_side("joint")) == ["learned"]  # one head has no pairs
    assert comparison.by_side("nothing") == {}


def test_an_axis_comes_by_its_name(comparison):
    assert comparison.axis("attention").name == "attention"
    with pytest.raises(StopIteration):
        comparison.axis("nothing")


def test_it_is_shown_with_its_verdict_and_its_claims(comparison):
    shown = comparison._repr_html_()
    found = headline(comparison.program, comparison.verdict)
    assert f"<b>{escape(found.sentence)}</b>" in shown
    assert all(f"<td>same {line.level}</td><td><b>{line.answer}</b></td>" in shown for line in found.levels)
    assert all(f"<li>{escape(reason)}</li>" in shown for reason in found.reasons)
    assert comparison.verdict.all_claims
    for claim in comparison.verdict.all_claims:
        assert f"<td>{claim.words}</td>" in shown
        assert f"<td>{claim.status}</td>" in shown


def test_names_stay_text(comparison):
    from dataclasses import replace

    shown = replace(comparison, learned_origin="<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_json_has_no_nan():
    assert plain({"a": float("nan"), "b": 1.5, "c": "x"}) == {"a": None, "b": 1.5, "c": "x"}


@pytest.mark.slow
def test_the_report_is_written(comparison, tmp_path):
    write_report(comparison, tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text()
    assert np.isfinite(comparison.rank)


def test_a_changed_number_is_noticed(comparison, tmp_path):
    path = tmp_path / "c.json"
    path.write_text(comparison.to_json().replace('"n_inputs": ', '"n_inputs": 1'))
    with pytest.raises(StorageError, match=r"c\.json.*checksum"):
        Comparison.load(path)


@pytest.mark.parametrize(
    "n", [20, pytest.param(200, marks=pytest.mark.slow), pytest.param(1_000, marks=pytest.mark.release)]
)
def test_a_damaged_comparison_is_refused_or_the_same(comparison, tmp_path, n):
    path, content, rng = tmp_path / "c.json", comparison.to_json().encode(), np.random.default_rng(0)
    refused = 0
    for _ in range(n):
        path.write_bytes(damaged(content, rng))
        try:
            loaded = Comparison.load(path)
        except StorageError:
            refused += 1
            continue
        assert loaded.to_json() == comparison.to_json()  # a space that became another one
    assert refused > 0.7 * n


@pytest.mark.parametrize("n", [20, pytest.param(1_000, marks=pytest.mark.slow)])
def test_a_forged_comparison_is_refused_or_can_be_shown(comparison, tmp_path, n):
    """Though its checksum is right."""
    path, rng, refused = tmp_path / "c.json", np.random.default_rng(0), 0
    values = json.loads(comparison.to_json())
    del values["checksum"]
    for _ in range(n):
        other = forged(values, rng)
        path.write_text(json.dumps({**other, "checksum": checksum(other, {})}))
        try:
            loaded = Comparison.load(path)
        except StorageError:
            refused += 1
            continue
        assert repr(loaded)
        assert loaded._repr_html_()
        json.loads(loaded.to_json())
    assert refused > 0.1 * n


def test_what_is_no_comparison_is_one_error(tmp_path):
    path = tmp_path / "c.json"
    with pytest.raises(StorageError, match=r"no file .*c\.json"):
        Comparison.load(path)
    for text in ("", "[]", "3", "null", "{}", "[" * 100_000, "<!DOCTYPE html>", '{"format": 9}'):
        path.write_text(text)
        with pytest.raises(StorageError, match=r"c\.json is no comparison that was stored"):
            Comparison.load(path)


def test_a_file_of_another_format_says_so_whatever_else_is_in_it(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"checksum": 1, "format": 5}')
    with pytest.raises(
        StorageError, match=rf"c\.json has format 5; this RASPLens reads {FORMAT}\. Compare again\."
    ):
        Comparison.load(path)
