"""Inputs of several lengths: what is asked of each, and that nothing else is trained on or counted."""

import numpy as np
import pytest

from rasplens.compare import as_studied_model, compare
from rasplens.compile import rasp
from rasplens.errors import RaspLensError
from rasplens.learned import train
from rasplens.tasks import build_task, compile_for, generated_accuracy, task_from_inputs
from rasplens.tasks.out_of_distribution import out_of_distribution_inputs
from rasplens.tasks.own.layout import parse_layout, read_positions
from rasplens.tasks.task import NOT_ASKED

SIDES = ("right", "left", "both")


def previous():
    """The token before; at the first one, it is its own answer."""
    before = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1)
    return rasp.categorical(rasp.Aggregate(before, rasp.tokens, default=None))


def echo(pad="right", **options):
    """Every token of x but the first, and then the one before it."""
    given = {"tokens": "abc", "answers": lambda tokens: ["BOS", *tokens[:-1]], "read": "after x2", "pad": pad}
    return build_task("echo", "BOS {x:2-5}", **{**given, **options})


def test_fields_of_variable_length_are_found_again():
    layout = parse_layout("BOS {x:1-3} SEP {y:0-2}")
    for x in ("a", "abc"):
        for y in ("", "de"):
            tokens = ["BOS", *x, "SEP", *y]
            assert layout.filled({"x": x, "y": y}) == tokens
            spans = layout.spans(tokens)
            assert "".join(tokens[i] for i in spans["x"]) == x
            assert "".join(tokens[i] for i in spans["y"]) == y
    assert layout.spans(["BOS", *"abcd", "SEP"]) is None
    assert layout.spans(["BOS", "a", "SEP", *"abc"]) is None
    with pytest.raises(RaspLensError, match=r"'x'.*'SEP'"):
        layout.filled({"x": ["a", "SEP"], "y": ""})
    with pytest.raises(RaspLensError, match=r"'x'.* 1 to 3 tokens.* 4"):
        layout.filled({"x": "abcd", "y": ""})
    with pytest.raises(RaspLensError, match=r"{x:1-3} {y}.* 'x'"):
        parse_layout("{x:1-3} {y}")


def test_answers_are_read_where_an_input_has_them():
    layout = parse_layout("BOS {x:1-3} SEP {y:1-3}")
    spans = layout.spans(["BOS", "a", "b", "SEP", "c"])
    assert read_positions(layout, "before y", spans) == (3,)
    assert read_positions(layout, "after SEP", spans) == (3, 4)
    assert read_positions(layout, ["x2", "x3", "y1"], spans) == (2, 4)
    assert read_positions(layout, "last", spans) == (4,)


@pytest.mark.slow
@pytest.mark.parametrize("pad", SIDES)
def test_only_an_inputs_own_tokens_are_asked(pad):
    task = echo(pad)
    assert task.n_ctx == 6
    asked, padding = task.is_asked(task.held_out), task.vocab.index(task.padding)
    tokens = task.held_out
    begins = (tokens == task.vocab.index("BOS")).argmax(axis=1)
    expected = (tokens != padding) & (np.arange(6) >= begins[:, None] + 2)
    np.testing.assert_array_equal(asked, expected[:, list(task.loss_positions)])
    assert 0 < asked.mean() < 1
    np.testing.assert_array_equal(task.target(tokens) == NOT_ASKED, ~asked)
    right = np.take_along_axis(np.roll(tokens, 1, axis=1), np.array([task.loss_positions]), axis=1)
    assert task.right(right, tokens).all()
    assert (len(set(begins.tolist())) > 1) == (pad != "right")


@pytest.mark.usefixtures("unchecked")
def test_the_padding_is_no_token_of_an_input():
    with pytest.raises(RaspLensError, match="padding 'b'"):
        echo(padding="b")
    with pytest.raises(RaspLensError, match=r"pad.*'up'"):
        echo("up")


@pytest.mark.slow
def test_accuracy_counts_what_is_asked():
    task = echo()
    ids, target = task.held_out, task.target(task.held_out)
    assert task.right(target, ids).mean() == 1
    wrong = target.copy()
    rows, columns = np.nonzero(target != NOT_ASKED)
    wrong[rows[0], columns[0]] = (wrong[rows[0], columns[0]] + 1) % len(task.outputs)
    right = task.right(wrong, ids)
    assert right.mean() == pytest.approx(1 - 1 / len(rows))
    assert right.all(axis=1).mean() == pytest.approx(1 - 1 / len(ids))
    assert task.accuracy(previous()).sequence == 1


@pytest.mark.parametrize("pad", SIDES)
def test_lists_of_several_lengths(pad):
    rng = np.random.default_rng(0)
    words = sorted({"".join(rng.choice(list("abc"), n)) for n in (2, 3, 4) for _ in range(60)})
    every = task_from_inputs("backwards", words, [list(word[::-1]) for word in words], pad=pad)
    padding = every.vocab.index("PAD")
    np.testing.assert_array_equal(every.is_asked(every.held_out), every.held_out != padding)
    for row, codes in zip(every.held_out, every.target(every.held_out), strict=True):
        own = row[row != padding]
        assert [every.outputs[code] for code in codes[row != padding]] == [every.vocab[i] for i in own[::-1]]
    last = task_from_inputs("first", words, [word[0] for word in words], pad=pad)
    assert (last.is_asked(last.held_out).sum(axis=1) == 1).all()


@pytest.mark.slow
def test_inputs_out_of_distribution_keep_their_padding():
    task = echo("both")
    padding = task.vocab.index(task.padding)
    is_padding = out_of_distribution_inputs(task, np.random.default_rng(0), 200) == padding
    assert (np.abs(np.diff(is_padding.astype(int), axis=1)).sum(axis=1) <= 2).all()
    assert 0 < is_padding.mean() < 1
    assert not is_padding.all(axis=1).any()


@pytest.mark.slow
def test_next_tokens_of_inputs_of_several_lengths_are_generated():
    task = build_task(
        "copy", "{x:1-3} SEP {y:1-3}", tokens="abc", computed={"y": lambda fields: fields["x"]}, read="before y"
    )
    perfect = lambda ids: np.maximum(task.target(task.held_out), 0)  # noqa: E731
    assert generated_accuracy(task, perfect).token == 1
    constant = generated_accuracy(task, lambda ids: np.zeros_like(perfect(ids)))
    assert constant.token == pytest.approx(
        (task.target(task.held_out) == 0).sum() / task.is_asked(task.held_out).sum()
    )


@pytest.mark.slow
def test_a_compiled_program_implements_itself_at_any_offset():
    task = echo("both")
    compiled = compile_for(task, previous())
    studied = as_studied_model(compiled, task, task.held_out)
    assert studied.right().all()
    np.testing.assert_array_equal(studied.answers() == NOT_ASKED, ~studied.asked)
    found = compare(compiled, compiled, task=task, config="quick")
    assert found.verdict.answer == "implements"
    assert found.accuracies["learned"].token == 1


def first_by(rule):
    """The first letter, found behind the BOS or at its usual position."""
    if rule == "content":
        found = rasp.Select(previous(), rasp.tokens, lambda k, q: k == "BOS")
    else:
        found = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 1)
    return rasp.categorical(rasp.Aggregate(found, rasp.tokens, default=None))


def first(pad):
    return build_task("first", "BOS {x:3-6} SEP", tokens="abcde", answers=lambda t: t[1], read="SEP", pad=pad)


@pytest.mark.slow
def test_offsets_tell_rules_of_content_from_rules_of_position():
    assert [first("right").accuracy(first_by(rule)).token for rule in ("content", "position")] == [1, 1]
    right = [first("both").accuracy(first_by(rule)).token for rule in ("content", "position")]
    assert right[0] == 1
    assert right[1] < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("pad", ["right", "both"])
def test_training_and_comparison_honour_what_is_asked(pad):
    task = echo(pad)
    learned = train(task)
    assert learned.provenance["accuracy"]["token"] > 0.99
    assert compare(compile_for(task, previous()), learned, task=task).verdict.answer == "implements"


@pytest.mark.slow
def test_a_rule_of_position_is_not_implemented_where_offsets_vary():
    task = first("both")
    learned = train(task)
    assert learned.provenance["accuracy"]["token"] > 0.99
    assert compare(compile_for(task, first_by("position")), learned, task=task).verdict.answer != "implements"
