"""Tasks from lists of inputs and from data files."""

import itertools
import json

import numpy as np
import pytest

from rasplens.errors import RaspLensError
from rasplens.tasks import task_from_data, task_from_inputs

ROWS = [list(row) for row in itertools.product("abc", repeat=3)]


def jsonl(tmp_path, rows):
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_one_answer_for_every_position_or_for_the_last_ones():
    every = task_from_inputs("every", ROWS, [row[::-1] for row in ROWS])
    assert every.loss_positions == (0, 1, 2)
    last = task_from_inputs("last", ROWS, [row[0] for row in ROWS])
    assert last.loss_positions == (2,)
    assert last.outputs == ("a", "b", "c")
    some = task_from_inputs("some", ROWS, [[None, row[0], row[1]] for row in ROWS], causal=True)
    assert some.loss_positions == (1, 2)
    ids = some.ids([list("abc")])
    assert [some.outputs[code] for code in some.target(ids)[0]] == ["a", "b"]
    assert not set(map(tuple, some.held_out.tolist())) & set(
        map(tuple, some.sample(np.random.default_rng(0), 300).tolist())
    )


def test_an_input_that_is_not_there_has_no_answer():
    task = task_from_inputs("some", ROWS[:20], [row[0] for row in ROWS[:20]])
    assert (task.target(task.ids([list("ccc")])) == -1).all()


@pytest.mark.parametrize(
    ("inputs", "answers", "said"),
    [
        ([], [], "'mine'.*no inputs"),
        (["ab"], [], "1 inputs.*0 answers"),
        (["ab", "abc"], [["a", "b"], ["a"]], "1 answers for 3 tokens.* 2 for 2"),
        (["ab", "ba"], [["a"], ["a", "b"]], "2 answers for 2 tokens"),
        (["ab", "ab"], ["a", "b"], "1 and 2.*different answers"),
        (["ab", "ba"], [["a", None], [None, None]], "input 2 of 'mine'.*None"),
        (["ab", ["PAD"]], ["a", "a"], "padding 'PAD'"),
        (["ab"], ["a"], "'mine'.*held out"),
    ],
)
def test_what_makes_no_task(inputs, answers, said):
    with pytest.raises(RaspLensError, match=said):
        task_from_inputs("mine", inputs, answers)


def test_json_lines(tmp_path):
    rows = [{"tokens": row, "answers": row[0], "split": "test" if row[0] == "a" else "train"} for row in ROWS]
    task = task_from_data(jsonl(tmp_path, rows))
    assert (task.name, task.vocab, len(task.held_out)) == ("mine", ("a", "b", "c"), 9)
    assert all(tokens[0] == "a" for tokens in task.sequences(task.held_out))
    text = [{"tokens": " ".join(row), "answers": row[::-1]} for row in ROWS]
    assert task_from_data(jsonl(tmp_path, text)).visible.all()
    assert not task_from_data(jsonl(tmp_path, text), causal=True).visible.all()


def test_a_table(tmp_path):
    path = tmp_path / "table.csv"
    lines = [f"{i} {j} = ,{i + j},{'test' if i == j else 'train'}" for i in range(5) for j in range(5)]
    path.write_text("\n".join(["tokens,answers,split", *lines]))
    task = task_from_data(path)
    assert task.outputs == tuple(range(9))
    assert task.loss_positions == (2,)
    assert len(task.held_out) == 5


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["{"], "line 1: .*JSON"),
        ([{"tokens": "a b"}], "line 1: .*object.*`answers`; this one has `tokens`"),
        ([{"tokens": 3, "answers": 1}], "line 1: `tokens`.*list"),
        ([{"tokens": "a b", "answers": 1, "split": "tset"}], "input 1: `split`.*'tset'"),
        ([], r"mine\.jsonl.*no inputs"),
    ],
)
def test_lines_that_are_no_inputs(tmp_path, rows, said):
    with pytest.raises(RaspLensError, match=said):
        task_from_data(jsonl(tmp_path, rows))


def test_files_that_are_no_data(tmp_path):
    with pytest.raises(RaspLensError, match=r"no file .*none\.csv"):
        task_from_data(tmp_path / "none.csv")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(RaspLensError, match=r"a\.txt.*\.jsonl.*\.csv"):
        task_from_data(tmp_path / "a.txt")
    (tmp_path / "a.csv").write_text("x,y\n1,2")
    with pytest.raises(RaspLensError, match=r"`tokens` and `answers`.*'x', 'y'"):
        task_from_data(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(RaspLensError, match=r"b\.csv.*UnicodeDecodeError"):
        task_from_data(tmp_path / "b.csv")
