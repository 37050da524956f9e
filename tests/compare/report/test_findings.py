import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.ablation.profiles import Overlap
from rasplens.compare.report.findings import METHODS, findings, paragraphs
from rasplens.compare.report.subspace_findings import last_overlaps
from rasplens.compare.verdict.verdict import LEVELS, Verdict


@pytest.fixture(scope="module")
def floor(one_head):
    return one_head


def about(comparison, name):
    """The paragraph about one thing."""
    return " ".join(next(one.sentences for one in paragraphs(comparison) if one.about == name)).strip()


def with_tables(comparison, **tables):
    return replace(comparison, tables={**comparison.tables, **tables})


def test_every_axis_has_a_paragraph_with_its_score_and_interval(ceiling):
    assert findings(ceiling) == [" ".join(one.sentences) for one in paragraphs(ceiling)]
    for axis in ceiling.axes:
        assert axis.has_score
        interval = f"95 % interval {axis.low:.2f} to {axis.high:.2f}"
        start = f"{axis.name.capitalize()}: {axis.score:.2f} of 1 ({interval}"
        assert about(ceiling, axis.name).startswith(start)


def test_the_verdict_comes_first(ceiling):
    first, levels, *_ = paragraphs(ceiling)[0].sentences
    assert re.search("'copy'.*implements.*'induction'", first)
    assert [f"same {level} (implements)" in levels for level in LEVELS] == [True] * 3


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("implements", "the learned model implements the program 'offset'."),
        ("partly", "the learned model implements the program 'offset' in part."),
        ("does not", "the learned model does not implement the program 'offset'."),
        ("cannot tell", "whether the learned model implements the program 'offset' cannot be told."),
    ],
)
def test_every_verdict_is_a_sentence(floor, answer, said):
    verdict = Verdict(
        answer, {"answers": "implements", "variables": "partly", "routes": answer}, (), ("A reason.",)
    )
    text = about(replace(floor, verdict=verdict), "evidence")
    assert said in text
    assert text.endswith(f"same variables (partly), same routes ({answer}). A reason.")


def test_an_interchange_that_needs_a_dormant_path_is_said_to(ceiling):
    table = ceiling.tables["interchange"]
    table = table.assign(method="linear map", random=0.1)
    dormant = replace(ceiling, tables={**ceiling.tables, "interchange": table.assign(active=0.25)})
    assert re.search("only 0.25: .*dormant", about(dormant, "interchange"))
    assert "dormant" not in about(ceiling, "interchange")
    nothing = table.assign(score=0.5, random=0.45, active=0.25)  # what controls reach too needs no explanation
    assert "dormant" not in about(
        replace(ceiling, tables={**ceiling.tables, "interchange": nothing}), "interchange"
    )


def test_every_sentence_has_the_numbers_it_comes_from(ceiling):
    accuracy = ceiling.accuracies["learned"]
    behaviour = about(ceiling, "behaviour")
    assert f"gets {100 * accuracy.token:.1f} % of the answers right" in behaviour
    assert f"agree with the program's: 100.0 % on {ceiling.n_inputs} held-out inputs (untrained " in behaviour
    row = ceiling.tables["interchange"].iloc[0]
    interchange = about(ceiling, "interchange")
    assert f"'previous' at {row['point']} ({METHODS['component']}, " in interchange
    assert re.search(rf" {row['score']:.2f}\. .*untrained model {row['untrained']:.2f}", interchange)
    mapped = ceiling.tables["interchange"].assign(method="linear map", random=0.1)
    said = about(with_tables(ceiling, interchange=mapped), "interchange")
    assert re.search(rf"{METHODS['linear map']}.* {row['score']:.2f}\. .*random subspaces .*0\.10", said)
    attention = about(ceiling, "attention")
    assert re.search(r"'induction' .*L1H0: similarity 1\.00\. .*other inputs .*\(p = 0\.025\)", attention)
    zero = ceiling.overlaps["zero"]
    ablation = about(ceiling, "ablation")
    assert "rank correlation of 1.00 between the models" in ablation
    critical = rf"\b{zero.either} edges .*0\.01.*, {zero.shared} of them in both; .*{zero.expected:.1f} "
    assert re.search(critical, ablation)
    assert "(accuracy 1.00, best control" in about(ceiling, "subspaces")


def test_what_the_controls_explain_is_said(floor):
    assert "0 of the program's 2 varying variables" in about(floor, "subspaces")
    assert "Not clearly above the controls: " in about(floor, "subspaces")
    ablation = about(floor, "ablation")
    assert re.search("mean ablation .*constant: no correlation", ablation)
    none = replace(floor, overlaps={"zero": Overlap(0, 4, 0.0, 1.0)})
    assert re.search(r"\b4 edges .*0\.01.* in one model, none", about(none, "ablation"))


def test_empty_and_absent_tables_are_said_to_be_empty(floor):
    nothing = replace(floor, tables={"decodability": pd.DataFrame(), "heads_learned": pd.DataFrame()})
    assert "nothing can be decoded" in about(nothing, "subspaces")
    assert "learned model has no attention heads" in about(nothing, "ablation")
    assert [one.about for one in paragraphs(nothing)][-1] == "subspaces"


def test_an_axis_without_a_score_says_so(floor):
    nan = float("nan")
    axes = [replace(axis, score=nan, low=nan, high=nan, note="for a reason") for axis in floor.axes]
    assert about(replace(floor, axes=tuple(axes)), "attention").startswith("Attention: no score, for a reason.")


def test_heads_without_a_match_are_named(floor):
    attention = floor.tables["attention"].assign(matched=False)
    text = about(with_tables(floor, attention=attention), "attention")
    assert re.search("No learned head .*'offset'", text)


def test_shared_heads_are_named(floor):
    shared = pd.DataFrame(
        [("split", "offset", "L0H0+1", 0.25), ("merged", "a, b", "L1H0", np.nan)],
        columns=["kind", "compiled", "learned", "gain"],
    )
    text = about(with_tables(floor, shared_heads=shared), "attention")
    assert re.search(r"L0H0\+1 together .*'offset' .* 0\.25\.", text)
    assert re.search(r"L1H0 is the most similar head .* a, b\.", text)


@pytest.mark.parametrize(("repaired", "is_said"), [(0.04, False), (0.3, True)])
def test_self_repair_is_named_where_it_matters(floor, repaired, is_said):
    joint = pd.DataFrame({"first": ["L0H0", "L0H0"], "second": ["L0H1", "L1H0"], "zero_repaired": [repaired, 0.0]})
    text = about(with_tables(floor, joint_learned=joint), "ablation")
    assert ("1 of the 2 pairs of learned heads cost more accuracy together" in text) is is_said
    assert ("L0H0 and L0H1 by 0.30." in text) is is_said


OVERLAPS = pd.DataFrame(
    [
        ("a", "b", "blocks.1.hook_resid_mid", 0, 1.0, 0.9, 0.8, 2.0),
        ("a", "b", "blocks.1.hook_resid_mid", 1, 1.0, 0.7, 0.6, 1.0),
        ("a", "b", "blocks.0.hook_resid_post", 0, 1.0, 0.1, 0.1, 1.0),
        ("a", "c", "blocks.0.hook_resid_pre", 0, 1.0, 0.6, None, None),
        ("b", "c", "blocks.0.hook_resid_pre", 0, 1.0, 0.2, None, None),
    ],
    columns=["first", "second", "point", "position", "cosine", "shared", "correlation", "scale"],
)


def test_variables_that_share_a_subspace_are_named_at_their_last_hook_point(floor):
    found = with_tables(floor, overlaps=OVERLAPS)
    table = last_overlaps(found).set_index(["first", "second"])
    assert table.loc[("a", "b"), "point"] == "blocks.1.hook_resid_mid"
    assert table.loc[("a", "b"), "shared"] == pytest.approx(0.8)
    said = next(one for one in paragraphs(found) if one.about == "overlaps").sentences
    assert len(said) == 3
    assert re.match(r"2 of 3 pairs .* 0\.5 ", said[0])
    assert re.match(r"'a' and 'b' share 0\.80 .*blocks\.1\.hook_resid_mid; .* 0\.70, .* 1\.50 ", said[1])
    assert re.match(r"'a' and 'c' share 0\.60 .*blocks\.0\.hook_resid_pre\.$", said[2])
    apart = with_tables(floor, overlaps=OVERLAPS.assign(shared=0.5))
    assert about(apart, "overlaps").startswith("0 of 3 pairs")


def test_a_comparison_that_was_stored_says_the_same(floor, tmp_path):
    floor.save(tmp_path / "c.json")
    assert findings(Comparison.load(tmp_path / "c.json")) == findings(floor)
