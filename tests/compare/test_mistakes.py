"""Mistakes that people make: each gets one line that says what to do."""

import math
import re
from types import SimpleNamespace

import pytest
import torch

from rasplens.compare import Comparison, compare, rank, vocabulary_of
from rasplens.compare.testing import assert_head_attends, assert_implements
from rasplens.compile import CompileError, UndefinedValue, compile_program, rasp, run, verify
from rasplens.errors import RaspLensError
from rasplens.learned import LearnedModel, untrained_like
from rasplens.model import HookedModel, StorageError
from rasplens.tasks import as_task, compile_for, get_task, task_from_inputs, task_from_program


@pytest.fixture(scope="module")
def task():
    return get_task("copy", n_letters=6, block=3, length=8)


@pytest.fixture(scope="module")
def compiled(task):
    return compile_for(task, "offset")


@pytest.fixture(scope="module")
def model(compiled, task):
    weights = untrained_like(compiled.transformer.config, compiled.transformer.mask, 0)
    return LearnedModel(weights, task.name, {"origin": "untrained"})


def test_the_model_before_the_program(compiled, model, task, unchecked):
    with pytest.raises(RaspLensError, match=r"CompiledModel.*program comes first") as error:
        compare(model, compiled, task=task)
    assert "\n" not in str(error.value)
    with pytest.raises(RaspLensError, match=r"CompiledModel.*program comes first"):
        rank([model], compiled, task=task)


@pytest.mark.parametrize("wrong", [lambda tokens: tokens, None, 3])
def test_what_is_no_program(wrong, compiled, task, unchecked):
    with pytest.raises(RaspLensError, match=f"CompiledModel.*got {re.escape(repr(wrong))}") as error:
        compare(wrong, compiled, task=task)
    assert "comes first" not in str(error.value)
    with pytest.raises(RaspLensError, match=rf"program.*s-op.*got {re.escape(repr(wrong))}"):
        run(wrong, "ab")


@pytest.mark.parametrize("wrong", [None, 7, ["copy"]])
def test_what_is_no_task(wrong, compiled, unchecked):
    with pytest.raises(RaspLensError, match=rf"Task.*copy.*got {re.escape(repr(wrong))}"):
        compare(compiled, compiled, task=wrong)


def test_a_program_that_the_task_does_not_have(compiled, task):
    with pytest.raises(RaspLensError, match=r"no program 'ofset'.* offset, induction"):
        compare("ofset", compiled, task=task)


@pytest.mark.slow
def test_programs_need_not_be_compiled_before(compiled, task):
    for program in ("offset", task.programs["offset"]):
        assert compare(program, compiled, task=task, config="quick").verdict.answer == "implements"
    assert_implements("offset", compiled, task)


def test_tasks_go_by_name(compiled):
    task = as_task("copy")
    assert task.name == "copy"
    assert as_task(task) is task
    assert compile_for("copy", "offset").inputs.vocab == task.vocab


def test_a_rule_may_leave_out_the_tokens(compiled, task):
    assert_head_attends(compiled, 0, 0, lambda key, query: key == query - 2, task, queries=task.loss_positions)
    assert_head_attends(compiled, 0, 0, lambda k, q, *rest: k == q - 2, task, queries=task.loss_positions)
    with pytest.raises(RaspLensError, match=r"rule.*\(key\).*key, query"):
        assert_head_attends(compiled, 0, 0, lambda key: True, task)


def test_what_holds_no_comparison(tmp_path):
    binary = tmp_path / "weights.bin"
    binary.write_bytes(bytes(range(256)) * 1_000)
    with pytest.raises(StorageError, match=r"weights\.bin.*comparison") as error:
        Comparison.load(binary)
    assert len(str(error.value)) < 300


def test_a_program_that_is_compiled_for_a_task_may_be_undefined_elsewhere():
    task = get_task("copy", n_letters=6, block=3, length=8)
    back = rasp.Select(rasp.indices, rasp.indices, lambda key, query: key in (query, query - 3))
    same = rasp.Aggregate(back, rasp.tokens).named("same")  # different letters have no mean
    compiled = compile_for(task, same)
    assert compiled(list("ABCABCAB"))[3:] == list("ABCAB")
    with pytest.raises(UndefinedValue):
        compiled(list("ABCDDCAB"))
    with pytest.raises(CompileError, match="undefined"):
        compile_program(same, task.vocab, task.n_ctx, mask=task.visible)


def test_a_model_without_numbers_is_not_compared(compiled, model, task):
    broken = HookedModel(model.transformer)
    with torch.no_grad():
        next(broken.parameters()).fill_(math.nan)
    with pytest.raises(RaspLensError, match=r"NaN on \d+ of \d+ inputs"):
        compare(compiled, broken, task=task, config="quick", vocabulary=vocabulary_of(compiled))


class _Module(torch.nn.Module):
    def __init__(self, forward):
        super().__init__()
        self._forward = forward

    def forward(self, ids):
        return self._forward(ids)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: verify(rasp.tokens), "verify.*compile_program.*got TokensType"),
        (lambda: compile_program("ab", rasp.tokens, 4), "compile_program.*s-op.*got str 'ab'"),
        (lambda: task_from_program("ab", rasp.tokens, 4), "task_from_program.*s-op.*got str 'ab'"),
        (lambda: task_from_inputs([["a"]], "x", ["a"]), "task_from_inputs.*name.*got list"),
        (lambda: get_task("copy", n_leters=3), "'copy'.*'n_leters'.*n_letters"),
    ],
)
def test_arguments_in_another_order(call, message):
    with pytest.raises(RaspLensError, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("other", ["model", 3, [[0, 1]]])
def test_accuracy_is_that_of_a_model(task, other):
    with pytest.raises(RaspLensError, match=f"CompiledModel.*got {re.escape(repr(other))}"):
        task.accuracy(other)


@pytest.mark.usefixtures("unchecked")
def test_a_module_gives_logits_at_every_position(task):
    size = len(task.vocab)

    def uniform(ids):
        return torch.zeros(*ids.shape, size)

    expected = task.accuracy(_Module(uniform))
    for forward in (
        lambda ids: uniform(ids).bfloat16(),
        lambda ids: (uniform(ids), None),
        lambda ids: SimpleNamespace(logits=uniform(ids)),
    ):
        assert task.accuracy(_Module(forward)) == expected
    for forward in (lambda ids: torch.zeros(len(ids), size), lambda ids: None):
        with pytest.raises(RaspLensError, match=r"logits \[batch, pos, logit\]"):
            task.accuracy(_Module(forward))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("ids", [[[0, 1]], torch.zeros(1, 3)])
def test_token_ids_are_whole_numbers(compiled, ids):
    with pytest.raises(RaspLensError, match=r"tokens .*\[batch, pos\]; got"):
        HookedModel(compiled.transformer)(ids)


def test_a_torch_module_is_adapted_first(compiled, task, unchecked):
    with pytest.raises(RaspLensError, match=r"_Module\b.*rasplens\.learned\.adapt"):
        compare(compiled, _Module(lambda ids: ids), task=task)
