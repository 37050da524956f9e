"""Answers and tokens that are no values, or not known: refused, or taken for what they stand for."""

import itertools
import json

import numpy as np
import pytest

from rasplens.compile.rasp import Aggregate, Comparison, Map, Select, numerical, tokens
from rasplens.errors import RaspLensError
from rasplens.tasks import build_task, task_from_data, task_from_inputs

MEAN = Aggregate(Select(tokens, tokens, Comparison.TRUE), numerical(tokens))


def of_last(answers, readout="label", given=range(4)):
    return build_task("last", "{x:3}", tokens=given, answers=answers, read="last", readout=readout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "readout", "why"),
    [
        (lambda row: float("nan"), "label", "answer.*got nan"),
        (lambda row: float("nan"), "number", "answer.*got nan"),
        (lambda row: None, "label", "answer.*got None"),
        (lambda row: {"a": 1}, "label", "answer.*got {'a': 1}"),
        (lambda row: [{1, 2}], "label", 'answer.*readout="labels"'),
        (lambda row: [[{"a": 1}]], "labels", "answer.*{'a': 1}"),
        (lambda row: [[None]], "labels", "answer.*got .*None"),
        (lambda row: 10**400, "number", "10{19} .*large"),
        (lambda row: float("inf"), "number", "inf .*large"),
        (lambda row: 2**24 + sum(row), "number", r"1677721\d and 1677721\d.*single precision"),
        (lambda row: 0.1 * row[0] + 0.2 * row[1] + 0.3 * row[2], "number", r"0\.\d+ and 0\.\d+.*single precision"),
        (lambda row: [set()], "labels", "answer.*label.*nothing"),
        (lambda row: row[7], "label", "`answers` of 'last'.*IndexError"),
    ],
)
def test_what_is_no_answer_is_refused(answers, readout, why):
    with pytest.raises(RaspLensError, match=why):
        of_last(answers, readout)


@pytest.mark.usefixtures("unchecked")
def test_another_readout_is_refused():
    with pytest.raises(RaspLensError, match=r"readout.*'numbr'"):
        of_last(lambda row: 1, "numbr")


@pytest.mark.parametrize("readout", ["label", "number"])
def test_a_mean_that_comes_out_whole_is_the_whole_number(readout):
    assert of_last(lambda row: sum(row) / len(row), readout).accuracy(MEAN).token == 1.0


@pytest.mark.slow
def test_numpy_answers_are_the_values_that_they_stand_for():
    every = {"layout": "{x:4}", "tokens": range(4), "read": "every", "causal": False}
    assert build_task("same", answers=np.array, **every).accuracy(tokens).token == 1.0
    larger = build_task("larger", answers=lambda row: np.array(row) > 1, **every)
    assert larger.outputs == (False, True)
    assert larger.accuracy(tokens > 1).token == 1.0


@pytest.mark.parametrize("readout", ["label", "labels", "number"])
def test_logits_that_are_no_numbers_are_no_answer(readout):
    task = of_last(lambda row: [{0}] if readout == "labels" else 0, readout)
    assert (task.codes(np.full((5, 1, task.n_logits), np.nan)) == -1).all()


def test_where_the_right_answer_is_not_known_none_is_right():
    words = [list(word) for word in ("aab", "aba", "baa", "bbb", "bba", "abb", "aaa")]
    task = task_from_inputs("known", words, [word[::-1] for word in words], held_out=[True] + [False] * 6)
    assert task.accuracy(Map(lambda letter: "z", tokens), task.ids([list("bab")])).token == 0


@pytest.mark.parametrize("pad", ["right", "left", "both"])
def test_an_input_is_held_out_wherever_it_is_padded(pad):
    words = [list(word) for n in (2, 4) for word in itertools.product("abc", repeat=n)]
    many = words * 5
    for held_out in (None, [len(word) == 2 for word in many]):
        task = task_from_inputs("words", many, [word[::-1] for word in many], pad=pad, held_out=held_out)
        drawn = task.sample(np.random.default_rng(0), 2_000)
        kept, trained = (
            {tuple(t for t in row if t != "PAD") for row in task.sequences(ids)} for ids in (task.held_out, drawn)
        )
        assert kept
        assert trained
        assert not kept & trained


def test_an_input_that_is_held_out_and_not_is_refused():
    with pytest.raises(RaspLensError, match=r"1 and 3 of 'twice'.*held out"):
        task_from_inputs("twice", [["a"], ["b"], ["a"]], [["a"], ["b"], ["a"]], held_out=[True, True, False])


@pytest.mark.parametrize("pad", ["right", "left", "both"])
def test_held_out_inputs_need_no_padding(pad):
    held_out = [["BOS", "a", "SEP"], ["BOS", "a", "b", "SEP"]]
    task = build_task(
        "first",
        "BOS {x:1-3} SEP",
        tokens="abc",
        answers=lambda row: row[1],
        read="SEP",
        pad=pad,
        held_out=held_out,
    )
    assert [[t for t in row if t != "PAD"] for row in task.sequences(task.held_out)] == held_out
    drawn = [[t for t in row if t != "PAD"] for row in task.sequences(task.sample(np.random.default_rng(0), 500))]
    assert not any(row in held_out for row in drawn)


def written(folder, name, text, **how):
    path = folder / name
    path.write_text(text, **{"encoding": "utf-8"} | how)
    return path


def test_texts_are_split_on_both_sides(tmp_path):
    rows = [
        {"tokens": " ".join(word), "answers": " ".join(word[::-1])} for word in itertools.product("abc", repeat=3)
    ]
    task = task_from_data(written(tmp_path, "texts.jsonl", "\n".join(map(json.dumps, rows))))
    assert (task.outputs, task.loss_positions) == (("a", "b", "c"), (0, 1, 2))


@pytest.mark.parametrize("mark", ["utf-8", "utf-8-sig"])
def test_line_ends_and_marks_of_other_systems_are_read(tmp_path, mark):
    words = ["\u2028".join(word) for word in itertools.product("ab", repeat=3)]
    rows = [{"tokens": [word, "a"], "answers": ["a", word]} for word in words]
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    task = task_from_data(written(tmp_path, "lines.jsonl", text, encoding=mark, newline=""))
    assert set(words) <= set(task.vocab)
    lines = [
        "tokens,answers",
        *(f"{a} {b},{b} {a}" for a, b in itertools.product(["7", "007", "0.5", "٣"], repeat=2)),
    ]
    table = task_from_data(written(tmp_path, "lines.csv", "\r\n".join(lines), encoding=mark, newline=""))
    assert set(table.vocab) == {7, "007", 0.5, "٣"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"tokens": ["a"], "answers": [NaN]}', "line 1: .*JSON.*NaN"),
        ('{"tokens": [Infinity], "answers": ["a"]}', "line 1: .*JSON.*Infinity"),
        ('{"tokens": ["a"], "answers": [{"a": 1}]}', "answer.*{'a': 1}"),
        ('{"tokens": ["a"], "answers": {"a": 1}}', "answer.*{'a': 1}"),
        ("[" * 100_000, "line 1: .*JSON.*deep"),
        ('{"tokens": ["a"], "answers": [' + "1" * 5_000 + "]}", "line 1: .*JSON.*digits"),
    ],
)
def test_strange_lines_are_refused(tmp_path, line, why):
    with pytest.raises(RaspLensError, match=why):
        task_from_data(written(tmp_path, "strange.jsonl", line))


def test_a_table_with_other_separators_says_what_it_has(tmp_path):
    with pytest.raises(RaspLensError, match=r"commas.*'tokens;answers'"):
        task_from_data(written(tmp_path, "semicolons.csv", "tokens;answers\na b;b a\n"))
