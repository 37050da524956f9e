import numpy as np
import pytest
import torch

from rasplens.compile import compile_program, rasp
from rasplens.model import Config, HookedModel, causal_mask
from rasplens.tasks import get_task
from rasplens.tasks.task import NO_ANSWER


@pytest.fixture(scope="module")
def task():
    return get_task("sort", n_values=4, length=3)


@pytest.fixture
def transformer(task, random_transformer):
    config = Config(n_layers=1, n_heads=1, d_model=8, d_head=8, n_ctx=8, d_vocab=6, d_vocab_out=4)
    return random_transformer(config, mask=causal_mask(1, 8))


def test_a_program_its_compiled_model_and_the_task_agree(task):
    program = task.programs["successor"]
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    target = task.target(task.held_out)
    np.testing.assert_array_equal(task.answers(program, task.held_out), target)
    np.testing.assert_array_equal(task.answers(compiled, task.held_out), target)
    assert task.accuracy(program) == (1, 1)
    assert task.accuracy(compiled) == (1, 1)


def test_a_transformer_answers_alike_in_numpy_in_torch_and_wrapped(task, transformer):
    expected = transformer(task.held_out)[:, list(task.loss_positions)].argmax(-1)
    np.testing.assert_array_equal(task.answers(transformer, task.held_out), expected)
    np.testing.assert_array_equal(task.answers(HookedModel(transformer), task.held_out), expected)
    wrapped = type("Wrapped", (), {"transformer": transformer})()
    np.testing.assert_array_equal(task.answers(wrapped, task.held_out), expected)


def test_answers_that_the_task_does_not_know_are_none(task):
    ids = task.held_out[:3]
    for program in (rasp.Full("nonsense"), rasp.Full(True)):
        assert (task.answers(program, ids) == NO_ANSWER).all()
        compiled = compile_program(program, task.vocab, task.n_ctx)
        assert (task.answers(compiled, ids) == NO_ANSWER).all()
    undefined = rasp.Aggregate(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE), rasp.tokens)
    assert (task.answers(undefined, ids) == NO_ANSWER).all()


def test_a_model_with_other_answers_is_refused(task):
    with pytest.raises(ValueError, match=r"9 logits.*'sort'.*4 answers"):
        task.answers(lambda ids: torch.zeros((*ids.shape, 9)), task.held_out)
