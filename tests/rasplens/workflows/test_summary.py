"""What is shown of a comparison, on tables of a row or two: whole comparisons are shown in test_run.py."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rasplens.compare import CompareConfig, compare
from rasplens.compare.axes import Axis
from rasplens.compare.claims.claim import Claim, untestable
from rasplens.compare.claims.routes import AllRoutes
from rasplens.compare.claims.variables import OneVariable
from rasplens.compare.evidence.attention.active_heads import over_sequence
from rasplens.compare.evidence.subspaces.decodability import COLUMNS
from rasplens.compare.report.attention_view import attention_on
from rasplens.compare.verdict.headline import in_words
from rasplens.compare.verdict.verdict import NOT, UNKNOWN, Verdict
from rasplens.compile import programs, rasp
from rasplens.errors import RaspLensError
from rasplens.tasks import compile_for, task_from_program
from rasplens.workflows.summary import ASK_MORE, EXPLAIN, show_agreement, show_evidence, show_verdict

NAN = float("nan")

CLAIM = Claim(OneVariable("target"), "holds", 0.96875, 0.9375, 1.0, 0.25, 150, True, "interchanged")
UNTESTED = untestable(AllRoutes(), "no hook point")

INTERCHANGE = ("variable", "point", "pairs", "iia", "specificity", "random", "untrained")
ATTENTION = (
    "variable", "layer", "head", "matched", "similarity", "shuffled", "input_dependence", "concordance", "p",
    "untrained",
)  # fmt: skip


@pytest.fixture
def comparison():
    return SimpleNamespace(
        axes=[Axis("behaviour", 0.875, 0.75, 1.0, "of all inputs"), Axis("attention", NAN, NAN, NAN, "no heads")],
        tables={
            "decodability": pd.DataFrame(columns=list(COLUMNS)),
            "interchange": pd.DataFrame(columns=list(INTERCHANGE)),
            "attention": pd.DataFrame(
                [
                    ("target", 0, 2, True, 0.625, 0.125, 0.5, 0.25, 0.01, 0.0),
                    ("target", 0, 3, False, 0.375, 0.125, 0.5, 0.25, 0.9, 0.0),
                ],
                columns=list(ATTENTION),
            ),
        },
        correlations={
            "zero": SimpleNamespace(rho=0.5, within_rows=0.25, p=0.0123, n=40),
            "resample": None,
        },
        program="last",
        verdict=Verdict(
            "implements", {"variables": "implements", "routes": "not testable"}, (CLAIM, UNTESTED), ()
        ),
        findings=["The first finding.", "The second."],
    )


def test_scores_stand_with_their_intervals_and_what_has_none_says_why(comparison, capsys):
    show_evidence(comparison)
    lines = capsys.readouterr().out.splitlines()
    behaviour, attention = (next(line for line in lines if line.startswith(axis.name)) for axis in comparison.axes)
    assert behaviour.split() == ["behaviour", "0.875", "0.750", "1.000"]
    assert attention.split() == ["attention", "-", "-", "-"]
    assert {"behaviour: of all inputs.", "attention: no heads."} <= set(lines)


def test_claims_stand_with_their_status_and_interval(comparison, capsys):
    show_evidence(comparison)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["variables", "variable", "target", "holds", "0.969", "0.938", "1.000", "0.250"] in lines
    assert ["routes", "routes", "not", "testable", "-", "-", "-", "-"] in lines
    assert ["75%", "is", "needed."] in lines


def test_matched_heads_are_shown_and_others_not(comparison, capsys):
    show_evidence(comparison)
    text = capsys.readouterr().out
    assert "L0H2" in text
    assert "L0H3" not in text


def test_ablations_that_were_not_correlated_are_left_out(comparison, capsys):
    show_evidence(comparison)
    text = capsys.readouterr().out
    assert "0.012" in text
    assert "resample" not in text


def test_tables_without_rows_are_left_out_and_hook_points_shortened(comparison, capsys):
    show_evidence(comparison)
    assert "Interchange" not in capsys.readouterr().out
    row = ("target", "blocks.1.hook_resid_post", 30, 0.75, 0.5, 0.25, 0.0)
    comparison.tables["interchange"] = pd.DataFrame([row], columns=list(INTERCHANGE))
    show_evidence(comparison)
    text = capsys.readouterr().out
    assert "Interchange" in text
    assert "L1 resid_post" in text
    assert "blocks.1" not in text


def test_the_findings_end_the_evidence_without_the_verdict(comparison, capsys):
    show_evidence(comparison)
    text = capsys.readouterr().out
    assert text.endswith("The second.\n\n")
    assert "The first finding." not in text


def test_the_verdict_is_a_line_its_levels_and_why(comparison, capsys):
    show_verdict(comparison)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "The learned model implements the program 'last'.",
        "  variables  implements    1 of 1 claims hold",
        "  routes     not testable  no claim that can be tested",
        "",
        f"Holds least clearly: {in_words(comparison.verdict.all_claims[0], is_of_part=False)}",
        "Not testable: routes (no hook point).",
        "",
    ]


@pytest.mark.parametrize(
    ("status", "answer", "said"), [("fails", NOT, EXPLAIN), ("cannot tell", UNKNOWN, ASK_MORE)]
)
def test_a_verdict_that_does_not_settle_it_says_what_to_do_next(comparison, capsys, status, answer, said):
    show_verdict(comparison)
    assert said not in " ".join(capsys.readouterr().out.split())
    (held, *others) = comparison.verdict.all_claims
    claims = replace(held, status=status, score=0.5), *others
    comparison.verdict = replace(comparison.verdict, answer=answer, all_claims=claims)
    show_verdict(comparison)
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.fixture(scope="module")
def counting():
    """A task whose answers are numbers."""
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    task = task_from_program(rasp.SelectorWidth(same).named("histogram"), ["a", "b", "c"], 4)
    return replace(task, outputs=task.outputs[:-1])  # without None, which it never gives


def test_a_program_that_gives_the_answers_is_not_spoken_of(counting, capsys):
    show_agreement(compile_for(counting), counting, as_part=False)
    assert capsys.readouterr().err == ""


def test_a_program_that_gives_some_of_the_answers_is_told_with_an_example(counting, capsys):
    program = compile_for(counting, (rasp.indices + 1).named("place"))
    show_agreement(program, counting, as_part=False)
    said = " ".join(capsys.readouterr().err.split())
    share = counting.accuracy(program).token
    assert 0 < share < 1
    assert f"'place' gives {share:.3f} of the answers of 'histogram': on " in said
    tokens, position, value, answer = re.search(
        r"on (\S+) at position (\d) it says (\d), the task says (\d)", said
    ).groups()
    word = tokens.split(",")
    assert int(value) == int(position) + 1
    assert int(answer) == word.count(word[int(position)]) != int(value)
    show_agreement(program, counting, as_part=False, is_shown=False)
    assert capsys.readouterr().err == ""


def test_a_program_of_other_values_can_never_be_right_and_is_refused(counting):
    program = compile_for(counting, rasp.tokens)
    with pytest.raises(RaspLensError, match=r"'tokens' has no value .*'histogram'.* says '[abc]'"):
        show_agreement(program, counting, as_part=False)


def test_a_part_is_right_where_it_says_something(counting, capsys):
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    only_ones = rasp.Map(lambda n: n if n == 1 else None, rasp.SelectorWidth(same)).named("ones")
    program = compile_for(counting, only_ones)
    show_agreement(program, counting, as_part=True)
    assert capsys.readouterr().err == ""
    show_agreement(program, counting, as_part=False)
    assert "'ones' gives 0." in capsys.readouterr().err


FEW = CompareConfig(n_inputs=10, n_fitting=10, questions=20, enumerated=0, head_answers=40, edge_answers=40)


@pytest.fixture(scope="module")
def kept():
    task = task_from_program(programs.reverse(), "ab", 4)
    return compare("reverse", compile_for(task), task=task, config=FEW)


@pytest.fixture
def runs(folder, kept):
    """A folder of two runs, of which the second asked about two programs and has no report."""
    for name in ("first", "second"):
        (folder / "runs" / name).mkdir(parents=True)
        kept.save(folder / "runs" / name / "comparison.json")
    kept.save(folder / "runs" / "second" / "comparison-other.json")
    (folder / "runs" / "first" / "report.html").write_text("a page")
    return folder / "runs"


@pytest.mark.parametrize("path", ["runs/first", "runs/first/comparison.json"])
def test_a_run_is_shown_as_it_was(cli, runs, kept, path):
    code, text, errors = cli("show", path)
    assert (code, errors) == (0, "")
    said = " ".join(text.split())
    assert kept.verdict.answer in said
    for level, answer in kept.verdict.levels.items():
        assert f"{level} {answer}" in said
    assert "compiled 1.000" in said
    assert "Report: runs/first/report.html." in said
    assert "Claims of the program" not in said
    _, text, _ = cli("show", path, "--verbose")
    assert "Claims of the program" in text


def test_several_are_a_table(cli, runs):
    for arguments in ((), ("runs",), ("runs/first", "runs/second", "runs/first")):
        code, text, _ = cli("show", *arguments)
        assert code == 0
        assert text.startswith("3 comparisons")
        lines = [line.split() for line in text.splitlines() if "implements" in line]
        assert [line[:3] for line in lines] == [
            ["runs/first", "reverse", "reverse"],
            ["runs/second", "reverse", "reverse"],
            ["runs/second/comparison-other.json", "reverse", "reverse"],
        ]
    assert "There is no report" in cli("show", "runs/second/comparison-other.json")[1]


def test_attention_on_an_input_of_ones_own(cli, runs, kept):
    n, names = len(kept.models.positions), kept.models.tokens
    ids = kept.pairing.ids[:1]
    typed = " ".join(names[i] for i in ids[0])
    code, text, errors = cli("show", "runs/first", "--input", typed)
    assert (code, errors) == (0, "")
    assert cli("show", "runs/first", "runs/first", "--input", typed)[1] == text
    assert text.count("Attention for") == len(attention_on(kept, typed).pairs) > 0
    _, text, _ = cli("show", "runs/first", "--input", typed, "--json")
    for found, pair in zip(json.loads(text), attention_on(kept, typed).pairs, strict=True):
        layer, index = found["heads"]["learned"]
        assert np.array(found["learned"]).shape == (n, n)
        wanted = kept.pairing.learned.on(ids).pattern(layer)[0, index]
        np.testing.assert_allclose(found["learned"], wanted, atol=1e-5)
        layer, index = found["heads"]["compiled"]
        wanted = over_sequence(kept.pairing.reference.on(ids).pattern(layer)[0, index])
        np.testing.assert_allclose(found["compiled"], wanted, atol=1e-5)
        assert found["variable"] == pair.variable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("runs/first",), "An input has"), (("runs",), "is for one run"), (("runs/first", "--verbose"), "omit one")],
)
def test_an_input_that_cannot_be_asked_is_refused(cli, runs, arguments, message):
    code, text, errors = cli("show", *arguments, "--input", "nowhere")
    assert (code, text) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1


def test_as_json_it_is_all_of_the_file(cli, runs, kept):
    _, text, _ = cli("show", "runs/first", "--json")
    (found,) = json.loads(text)
    assert found.pop("file") == "runs/first/comparison.json"
    assert found == json.loads(json.dumps(kept.to_dict()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("nowhere",), "no file or folder nowhere"), (("empty",), "empty holds no comparison.json"), ((), "runs")],
)
def test_what_holds_no_comparison_is_refused(cli, folder, arguments, message):
    (folder / "empty").mkdir()
    code, text, errors = cli("show", *arguments)
    assert (code, text) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1


def test_a_file_that_was_changed_is_refused(cli, runs):
    file = runs / "first" / "comparison.json"
    file.write_text(file.read_text().replace("implements", "does not"))
    code, _, errors = cli("show", "runs/first")
    assert code == 2
    assert "comparison.json" in errors
    code, text, errors = cli("show")  # the others are shown
    assert code == 0
    assert text.startswith("2 comparisons")
    assert errors.startswith("Left out: ")
