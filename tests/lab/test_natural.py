"""The mechanisms' programs solve their tasks, and the truth script tells compiled programs apart."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lab.natural import page, train, truth, verdicts
from lab.natural.mechanisms import MECHANISMS, get_mechanism
from lab.natural.predictions import Predictions, answers_asked, steps_of
from lab.natural.train import SHAPES, model_name, plan, recipe_of, shapes_of, train_shape
from rasplens.tasks.task import NO_ANSWER


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_program_gives_the_answers_of_its_task(name):
    task = get_mechanism(name).task
    assert len(task.programs) >= 2
    for program in task.programs.values():
        assert task.accuracy(program, task.held_out[:40]).token == 1


def test_an_unknown_mechanism_is_an_error():
    with pytest.raises(ValueError, match=r"'addition'.* reverse, "):
        get_mechanism("addition")


def test_the_plan_is_broad_before_it_is_deep():
    planned = list(plan(["reverse", "histogram"]))
    assert planned[:3] == [("reverse", "one"), ("histogram", "one_mlp"), ("reverse", "one_mlp")]
    assert [shape for name, shape in planned if name == "reverse"] == list(SHAPES)
    assert "one" not in shapes_of(get_mechanism("histogram"))


def test_the_deeper_shape_has_a_layer_to_spare():
    mechanism = get_mechanism("induction")
    assert recipe_of(mechanism, "deeper").architecture.n_layers == mechanism.n_layers + 1


@pytest.mark.slow
def test_what_is_trained_is_kept_and_not_trained_again(tmp_path):
    trained = train_shape("first", "one", (0,), tmp_path)
    assert trained[0].provenance["accuracy"]["token"] > 0.99
    path = tmp_path / f"{model_name('first', 'one', 0)}.safetensors"
    assert train_shape("first", "one", (0,), tmp_path) == {}
    assert [finding.label for finding in truth.study(path)] == ["same", "different"]


def test_steps_share_a_selector_and_know_their_depth():
    program = get_mechanism("histogram").programs["histogram_by_averaging"]
    (step,) = steps_of(program)
    assert (len(step.sops), step.depth, step.counts) == (5, 1, False)
    gather, match = steps_of(get_mechanism("induction").programs["induction"])
    assert (gather.depth, match.depth) == (1, 2)


def predictions(name, program, edges, rows=None):
    task = get_mechanism(name).task
    rng = np.random.default_rng(0)
    bases, sources = task.draw(rng, len(edges)), task.draw(rng, len(edges))
    return Predictions(task.programs[program], task, bases, sources, edges, rows, answers_asked(task))


def test_with_all_values_of_a_source_reverse_gives_the_source_backwards():
    one = predictions("reverse", "reverse", np.ones((20, 6, 6), dtype=bool))
    assert (one.answers(one.steps, "values") == one.sources[:, ::-1]).all()
    assert (one.answers(one.steps, "keys") == one.bases[:, ::-1]).all()
    assert (one.answers(one.steps, "both") == one.sources[:, ::-1]).all()


def test_keys_decide_what_is_looked_at_and_values_what_is_averaged():
    edges = np.broadcast_to(~np.eye(6, dtype=bool), (60, 6, 6))
    looking, averaging = (
        predictions("histogram", f"histogram_by_{how}", edges) for how in ("looking", "averaging")
    )
    own = looking.task.target(looking.bases)
    with_others = ((looking.bases[:, :, None] == looking.sources[:, None, :]) & edges).sum(axis=2)
    for one, of_source, expected in [
        (looking, "keys", with_others),
        (looking, "values", own),
        (averaging, "keys", own),
        (averaging, "values", with_others),
    ]:
        answers = one.answers(one.steps, of_source)
        assert (answers != NO_ANSWER).mean() > 0.9
        assert (answers == expected)[answers != NO_ANSWER].all()


def test_an_answer_that_the_task_cannot_ask_for_is_left_out():
    """Two keys that match a query would mean two different tokens at once, whose mean is no token."""
    one = predictions("induction", "induction", np.ones((40, 9, 9), dtype=bool))
    answers = one.answers(one.steps[1:], "keys")
    assert (answers == NO_ANSWER).any()
    assert one.is_asked(answers).any()
    assert not one.is_asked(answers)[answers == NO_ANSWER].any()


def test_queries_are_taken_for_whole_rows_and_say_what_is_looked_for():
    """With all queries of a source, histogram by looking counts the source's tokens among the base's others."""
    rows = np.arange(6) == np.arange(60)[:, None] % 6
    one = predictions("histogram", "histogram_by_looking", np.zeros((60, 6, 6), dtype=bool), rows)
    answers = one.answers(one.steps, "queries")
    counted = (one.bases[:, None, :] == np.where(rows, one.sources, one.bases)[:, :, None]).sum(axis=2)
    assert (answers + 1 == counted)[answers != NO_ANSWER].all()
    assert (answers != one.task.target(one.bases))[rows & (answers != NO_ANSWER)].any()
    averaging = predictions("histogram", "histogram_by_averaging", one.edges, rows)
    assert (averaging.answers(averaging.steps, "queries") == one.task.target(one.bases)).all()


def test_deeper_steps_come_in_later_layers():
    steps = steps_of(get_mechanism("induction").programs["induction"])
    assert list(truth.layouts(steps, 3)) == [(0, 1), (0, 2), (1, 2)]
    assert list(truth.layouts(steps, 1)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["previous_equal", "majority"])
def test_compiled_programs_are_told_apart(name):
    found = truth.compiled_controls(name)
    assert {finding.label for finding in found} == {"same", "different"}
    for finding in found:
        is_itself = finding.model.endswith(f"compiled-{finding.program}")
        assert finding.label == ("same" if is_itself else "different"), truth.report(finding)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_compiled_program_is_told_apart(name):
    for finding in truth.compiled_controls(name):
        is_itself = finding.model.endswith(f"compiled-{finding.program}")
        assert finding.label == ("same" if is_itself else "different"), truth.report(finding)


PASSING = dict.fromkeys(truth.PASSES, 1.0) | {"accuracy": 1.0, "own_only": 0.2, "alone": 0.3}


@pytest.mark.parametrize(
    ("changed", "label", "why"),
    [
        ({}, "same", "every test"),
        ({"accuracy": 0.9}, "not learned", "accuracy 0.900"),
        ({"cut": 0.7}, "different", "cut 0.70"),
        ({"cut": 0.7, "spread": 0.6}, "different", "cut 0.70"),
        ({"cut": 0.7, "spread": 1.0}, "unknown", "spread 1.00, cut 0.70"),
        ({"values_changed": 0.7}, "unknown", "values_changed 0.70"),
        ({"values_changed": 0.0}, "different", "values_changed 0.00"),
        ({"alone": 0.97}, "different", "alone 0.97"),
        ({"own_only": 0.9}, "unknown", "own_only 0.90"),
        ({"queries_changed": 0.4}, "different", "queries_changed 0.40"),
        ({"queries_class": 0.7}, "unknown", "queries_class 0.70"),
        ({"values_changed": None, "keys_changed": None}, "unknown", "no answer was predicted to change"),
    ],
)
def test_figures_decide_the_label(changed, label, why):
    assert truth.judge(PASSING | changed) == (label, why)


def test_a_head_takes_the_rule_where_it_mostly_attends_there():
    own = torch.tensor([[[[0.9, 0.1], [0.2, 0.8]]]])
    selected = torch.tensor([[[True, False], [True, False]]])
    ruled = truth.by_selection(own, selected, torch.full_like(own, 0.5))
    assert ruled[0, 0].tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_levels_keep_what_membership_decides_and_nothing_else():
    scores = torch.tensor([[[[1.0, 0.0]]], [[[3.0, 0.0]]], [[[9.0, 0.0]]]])
    selected = np.array([[[True, False]], [[True, False]], [[False, False]]])
    patterns = truth.by_membership(scores, [selected])
    assert torch.equal(patterns[0], patterns[1])
    assert torch.allclose(patterns[0, 0, 0], torch.tensor([2.0, 0.0]).softmax(dim=0))
    assert torch.allclose(patterns[2, 0, 0], torch.tensor([9.0, 0.0]).softmax(dim=0))


def test_the_page_names_every_label():
    figures = PASSING | {"rule": 1.0, "levels": 1.0}
    found = [
        {
            "model": "first-one-0", "mechanism": "first", "shape": "one", "seed": 0, "program": program,
            "label": label, "why": "cut 0.31", "layout": [0], "figures": figures,
        }
        for program, label in (("first", "same"), ("first_by_relay", "different"))
    ]  # fmt: skip
    controls = [found[0] | {"model": "first-compiled-first"}]
    text = page.page(found, controls)
    begin, end = page.VERDICTS
    assert f"{begin}\n{end}" in text
    compared = text.replace(begin, f"{begin}\n| a table |")
    assert page.page(found, controls, compared) == compared
    assert "| first | 1 of 1 | `first_by_relay` | 0 | 1 | 0 |" in text
    assert "1 of 1 labels are right" in text
    assert "0 of 1 labels are right" in page.page(found, [found[1] | {"model": "first-compiled-first_by_relay"}])


def test_verdicts_are_jobs_whose_failures_stand_in_the_table(tmp_path, monkeypatch):
    """A job for each model and program of a seed that is labelled, as data; what failed is told."""
    monkeypatch.setattr(verdicts, "MODELS", tmp_path)
    for one in json.loads(verdicts.TRUTH.read_text())["models"]:
        (tmp_path / f"{one['model']}.safetensors").touch()
    asked = list(verdicts.jobs({0}, "quick"))
    assert {job.arguments["seed"] for job in asked} == {0}
    assert all(list(job.files) == [job.arguments["path"]] for job in asked)
    assert "not learned" not in {job.arguments["label"] for job in asked}
    columns = (
        "model",
        "seed",
        "program",
        "label",
        "verdict",
        "reasons",
        "error",
        "layers",
        "provable",
        "proved",
        "by_row",
        "refuted",
    )
    rows = [
        ("m-one-0", 0, "first", "same", "implements", "", None, 1, 4, 2, 1, 1),
        ("m-one-0", 0, "last", "different", "implements", "because", None, 2, 5, 0, 0, 0),
        ("m-one-1", 1, "first", "same", None, None, "KeyError: 1", None, None, None, None, None),
    ]
    text = verdicts.page(pd.DataFrame(rows, columns=columns), "quick")
    assert text.startswith("2 comparisons of known truth (`quick`): 50.0% right (seed 0 50.0%), 50.0% wrong")
    assert "| m-one-0 | last | different | implements | because |" in text
    assert "2 are proved, 1 more row by row, and 1 have a counterexample (75.0%, with rows 100.0%" in text
    assert "`m-one-1`, first, is left out: KeyError: 1." in text


def test_where_nothing_could_be_compared_the_errors_are_told():
    rows = [{"model": "m-one-0", "program": "first", "label": "same", "error": "KeyError: 1"}]
    with pytest.raises(SystemExit, match=r"verdict\.\nKeyError: 1"):
        verdicts.page(pd.DataFrame(rows), "quick")


@pytest.mark.slow
def test_training_by_a_sweep_trains_what_lacks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    which = ["--only", "first", "--shapes", "one", "--seeds", "0"]
    where = ["--folder", "models", "--copy-to", "copy", "--results", "results"]
    monkeypatch.setattr("sys.argv", ["train", *which, *where, "--processes", "1"])
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    train.main()
    assert capsys.readouterr().out.split()[-4:-1] == ["one", "1", "1.0"]
    assert (tmp_path / "copy" / "first-one-0.safetensors").is_file()
    (tmp_path / "models" / "first-one-0.safetensors").rename(tmp_path / "elsewhere.safetensors")
    with pytest.raises(SystemExit, match=r"models .*first-one-0\.safetensors"):
        train.main()
    (tmp_path / "elsewhere.safetensors").rename(tmp_path / "models" / "first-one-0.safetensors")
    said = verdicts.compared("first", "first", "models/first-one-0.safetensors", "quick", model="first-one-0")
    assert said["verdict"] == "implements"
