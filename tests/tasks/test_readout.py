"""Answers that are several labels at once, or numbers."""

import json
from itertools import product

import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

from rasplens.compare import compare
from rasplens.compile import rasp
from rasplens.errors import RaspLensError
from rasplens.learned import train, untrained_like
from rasplens.learned.training.steps import losses_of
from rasplens.model import Config, HookedModel
from rasplens.tasks import build_task, compile_for, task_from_data, task_from_inputs
from rasplens.tasks.readout import answer_codes, logit_table, ordered_labels
from rasplens.tasks.task import NO_ANSWER

SETS = ((), ("a",), ("b",), ("a", "b"))


def seen(**options):
    """Which letters stood anywhere so far."""
    given = {"answers": lambda tokens: [set(tokens[: i + 1]) for i in range(4)], "readout": "labels"}
    return build_task("seen", "{x:4}", tokens="abc", **{**given, **options})


def counts():
    """How many a there are."""
    return build_task(
        "count", "{x:5}", tokens="abc", answers=lambda t: t.count("a"), read="last", readout="number"
    )


def test_labels_are_those_above_zero():
    table = logit_table("labels", SETS)
    np.testing.assert_array_equal(table, [[0, 0], [1, 0], [0, 1], [1, 1]])
    logits = np.array([[-1.0, -2.0], [0.1, -1.0], [-3.0, 2.0], [5.0, 1.0]])
    np.testing.assert_array_equal(answer_codes(table, "labels", logits), range(4))
    np.testing.assert_array_equal(answer_codes(table, "labels", jnp.asarray(logits), jnp), range(4))
    assert answer_codes(table[:3], "labels", logits[3]) == NO_ANSWER


def test_a_number_is_the_nearest_answer():
    table = logit_table("number", (0, 2.5, -1))
    np.testing.assert_array_equal(answer_codes(table, "number", np.array([[0.9], [1.5], [-7.0]])), [0, 1, 2])


@pytest.mark.slow
def test_the_order_of_labels_is_none():
    assert ordered_labels(["b", "a", "b"]) == ordered_labels({"a", "b"}) == ("a", "b")
    assert ordered_labels([2, True, "x", 1]) == (True, 1, 2, "x")
    task = seen()
    assert task.answer_code(("b", "a")) == task.answer_code(("a", "b")) >= 0


def test_what_cannot_be_read_so():
    with pytest.raises(RaspLensError, match=r"number.*'a'"):
        logit_table("number", ("a", 1))
    with pytest.raises(RaspLensError, match=r"tuple.*'a'"):
        logit_table("labels", ("a",))


@pytest.mark.slow
def test_the_losses():
    task, rng = seen(), np.random.default_rng(0)
    logits, targets = rng.normal(size=(6, 4, 3)), jnp.asarray(rng.integers(0, len(task.outputs), (6, 4)))
    wanted = task.logit_table[targets]
    expected = -(wanted * np.log(1 / (1 + np.exp(-logits))) + (1 - wanted) * np.log(1 / (1 + np.exp(logits))))
    np.testing.assert_allclose(losses_of(task, jnp.asarray(logits), targets), expected.mean(axis=-1), rtol=1e-4)
    task = counts()
    codes = jnp.asarray(rng.integers(0, 3, (6, 1)))
    squares = (logits[:, :1, :1] - np.array(task.outputs)[codes][..., None])[..., 0] ** 2
    np.testing.assert_allclose(losses_of(task, jnp.asarray(logits[:, :1, :1]), codes), squares, rtol=1e-4)
    plain = task_from_inputs("last", list(product("ab", repeat=4)), [t[-1] for t in product("ab", repeat=4)])
    two = jnp.asarray(logits[..., :2])
    np.testing.assert_allclose(
        losses_of(plain, two, targets % 2), optax.softmax_cross_entropy_with_integer_labels(two, targets % 2)
    )


@pytest.mark.slow
def test_a_model_has_a_logit_for_each_label():
    task = seen()
    assert (task.n_logits, counts().n_logits) == (3, 1)
    config = Config(1, 1, 8, 8, task.n_ctx, len(task.vocab), task.n_logits)
    model = untrained_like(config, task.mask(1), 0)
    assert 0 <= task.accuracy(model).token < 0.9
    with pytest.raises(RaspLensError, match=r"1 logits.*'seen'.* 3 logits.*labels"):
        task.accuracy(untrained_like(Config(1, 1, 8, 8, task.n_ctx, len(task.vocab), 1), task.mask(1), 0))


def test_data_with_several_labels(tmp_path):
    rows = [{"tokens": list(word), "answers": [sorted(set(word))]} for word in product("abc", repeat=4)]
    path = tmp_path / "sets.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    task = task_from_data(path)
    assert (task.readout, task.n_logits, task.loss_positions) == ("labels", 3, (3,))
    ids = task.ids([list("abba")])
    assert task.outputs[task.target(ids)[0, 0]] == ("a", "b")


def letters_so_far():
    """The letters that stood anywhere so far, as a tuple."""
    so_far = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LEQ)
    parts = []
    for letter in "abc":
        here = rasp.Select(rasp.tokens, rasp.tokens, lambda k, q, letter=letter: k == letter)
        parts.append(rasp.Map(lambda n, letter=letter: (letter,) * (n > 0), rasp.SelectorWidth(here & so_far)))
    two = rasp.SequenceMap(lambda x, y: x + y, parts[0], parts[1])
    return rasp.categorical(rasp.SequenceMap(lambda x, y: x + y, two, parts[2]))


@pytest.mark.slow
def test_several_labels_are_learned_and_compared():
    task = seen()
    learned = train(task)
    assert learned.provenance["accuracy"]["token"] > 0.99
    assert learned.transformer.config.d_vocab_out == 3
    compiled = compile_for(task, letters_so_far())
    found = compare(compiled, learned, task=task, config="quick")
    assert found.accuracies["compiled"].token == found.accuracies["program"].token == 1
    assert found.verdict.answer != "does not"
    assert compare(compiled, compiled, task=task, config="quick").verdict.answer == "implements"


@pytest.mark.slow
def test_numbers_are_learned_and_compared_with_programs_that_select_and_that_average():
    task = counts()
    learned = train(task, "mlp")
    assert learned.provenance["accuracy"]["token"] > 0.95
    ids = torch.from_numpy(task.sample(np.random.default_rng(0), 32))
    _, cache = HookedModel(learned.transformer).run_with_cache(ids)
    for layer in range(2):  # it averages over all positions and counts by what it carries from them
        assert cache[f"blocks.{layer}.attn.hook_pattern"][:, :, -1].max() < 0.3
    width = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, lambda k, q: k == "a"))
    selecting = compare(compile_for(task, rasp.numerical(width)), learned, task=task, config="quick")
    assert selecting.accuracies["compiled"].token == 1
    assert selecting.verdict.levels["answers"] == "implements"
    keys = selecting.verdict.claims.set_index("claim").loc["keys decide as in the program"]
    assert (keys.status, keys.score) == ("fails", 0)
    everywhere = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.TRUE)
    is_a = rasp.numerical(rasp.Map(lambda letter: float(letter == "a"), rasp.tokens))
    count = rasp.numerical(rasp.Map(lambda share: 5 * share, rasp.numerical(rasp.Aggregate(everywhere, is_a))))
    averaging = compare(compile_for(task, count), learned, task=task, config="quick")
    assert averaging.verdict.levels["answers"] == averaging.verdict.levels["routes"] == "implements"
