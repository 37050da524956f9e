"""Tasks from a layout."""

import numpy as np
import pytest

from rasplens.compare import compare
from rasplens.compile import rasp
from rasplens.errors import RaspLensError
from rasplens.tasks import build_task, compile_for, get_task
from rasplens.tasks.own.layout import parse_layout, read_positions

LETTERS = "abcdef"
LAYOUT = "BOS {x:3} SEP {y:3}"


def sorting(layout=LAYOUT, **options):
    given = {"tokens": range(6), "computed": {"y": lambda fields: sorted(fields["x"])}, "read": "before y"}
    return build_task("my sort", layout, **{**given, **options})


def test_a_layout_names_its_positions():
    layout, tokens = parse_layout("BOS {x:2} SEP {q} SEP"), ["BOS", "a", "b", "SEP", "c", "SEP"]
    assert layout.names(layout.longest) == ("BOS", "x1", "x2", "SEP", "q", "SEP5")
    assert layout.filled({"x": ["a", "b"], "q": ["c"]}) == tokens
    spans = layout.spans(tokens)
    assert spans == layout.longest
    assert (tokens[spans["x"].start : spans["x"].stop], spans["q"], spans["SEP5"]) == (
        ["a", "b"],
        range(4, 5),
        range(5, 6),
    )
    assert layout.spans(tokens[::-1]) is None


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("BOS", "'BOS'.*no field"),
        ("{x:2} {x}", "'x'.*twice"),
        ("a{x:2}", "'a{x:2}'.*field"),
        ("{x:0}", "'x'.*no token"),
    ],
)
def test_what_is_no_layout(template, said):
    with pytest.raises(RaspLensError, match=said):
        parse_layout(template)


@pytest.mark.parametrize(
    ("read", "places"),
    [
        ("every", tuple(range(8))),
        ("last", (7,)),
        ("after SEP", (4, 5, 6, 7)),
        ("before y", (4, 5, 6)),
        ("x2", (2,)),
        (["y1", "SEP"], (4, 5)),
    ],
)
def test_where_answers_are_read(read, places):
    assert read_positions(parse_layout(LAYOUT), read) == places


@pytest.mark.parametrize("read", ["somewhere", "after NOTHING", "before BOS", [], ["x9"]])
def test_answers_that_are_read_nowhere(read):
    with pytest.raises(RaspLensError, match=r"every, last, after.*x1"):
        read_positions(parse_layout(LAYOUT), read)


def test_it_is_the_same_task_as_one_written_by_hand():
    mine, theirs = sorting("BOS {x:3} MID {y:3}"), get_task("sort", n_values=6, length=3)
    ids = mine.ids(theirs.sequences(theirs.held_out[:50]))
    answers = [[mine.outputs[code] for code in row] for row in mine.target(ids).tolist()]
    theirs_said = [[theirs.outputs[code] for code in row] for row in theirs.target(theirs.held_out[:50]).tolist()]
    assert answers == theirs_said
    assert mine.loss_positions == theirs.loss_positions
    assert (mine.mask(1) == theirs.mask(1)).all()


@pytest.mark.slow
def test_held_out_inputs_are_never_drawn():
    task = sorting()
    assert not task.is_held_out(task.sample(np.random.default_rng(0), 500)).any()
    chosen = [["BOS", 1, 2, 3, "SEP", 1, 2, 3], ["BOS", 3, 2, 1, "SEP", 1, 2, 3]]
    given = sorting(held_out=chosen)
    assert given.sequences(given.held_out) == chosen
    drawn = given.sequences(given.sample(np.random.default_rng(0), 2_000))
    assert not any(tokens in chosen for tokens in drawn)


@pytest.mark.slow
def test_fields_may_have_to_differ_and_to_fulfil_a_condition():
    task = sorting(distinct=["x"], condition=lambda fields: fields["x"][0] < 3)
    lists = [row[1:4] for row in task.sequences(task.held_out)]
    assert all(len(set(row)) == 3 and row[0] < 3 for row in lists)
    with pytest.raises(RaspLensError, match=r"'my sort'.*conditions"):
        sorting(condition=lambda fields: False)
    with pytest.raises(RaspLensError, match=r" 2 tokens.* 3 places.*'x'"):
        sorting(tokens=range(2), distinct=["x"])


@pytest.mark.slow
def test_answers_may_be_a_program_or_a_function():
    same = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)).named("histogram")
    given = {"tokens": LETTERS, "causal": False}
    by_program = build_task("p", "{x:4}", answers=same, programs={"histogram": same}, **given)
    by_function = build_task("f", "{x:4}", answers=lambda tokens: [tokens.count(t) for t in tokens], **given)
    assert by_program.outputs == by_function.outputs == (1, 2, 3, 4)
    ids = by_program.held_out
    assert (by_program.target(ids) == by_function.target(ids)).all()
    assert by_program.accuracy(same).token == 1.0
    last = build_task("l", "{x:4}", answers=lambda tokens: tokens[0], read="last", **given)
    assert last.outputs == tuple(LETTERS)
    assert last.target(last.held_out).shape == (len(last.held_out), 1)


@pytest.mark.slow
def test_a_built_task_can_be_compared_on():
    back = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 3), rasp.tokens).named(
        "back"
    )
    task = build_task(
        "echo", "{x:3} SEP {y:3}", tokens=LETTERS, computed={"y": lambda f: f["x"]}, read="before y",
        programs={"back": back},
    )  # fmt: skip
    assert task.accuracy(back).token == 1.0
    result = compare("back", compile_for(task, "back"), task=task, config="quick")
    assert result.verdict.answer == "implements"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"read": "every"}, "last position.*`answers`"),
        ({"causal": False}, "causal=False.*`answers`"),
        ({"answers": lambda tokens: [1, 2]}, "2 answers.* 3 positions"),
        ({"outputs": [0]}, "'my sort'.*`outputs`"),
        ({"tokens": {"z": [1]}}, "'z'.* x, y"),
        ({"tokens": {"y": [1]}, "computed": {}}, "`tokens`.*'x'"),
        ({"computed": {"z": sorted}}, "'z'.* x, y"),
        ({"computed": {"y": lambda fields: [1]}}, "'y'.* 3 tokens.* 1"),
        ({"distinct": ["z"]}, "'z'.*distinct.* x, y"),
        ({"held_out": [["BOS", 9, 1, 1, "SEP", 1, 1, 9]]}, "Token 9"),
        ({"tokens": [None]}, "token.*bool.*None"),
    ],
)
def test_what_makes_no_task(options, said):
    with pytest.raises(RaspLensError, match=said):
        sorting(**options).accuracy(rasp.tokens)
