"""Mistakes that people make: each gets one line that says what to do."""

import pytest

from rasplens.compare import Comparison, compare, rank
from rasplens.compare.testing import assert_head_attends, assert_implements
from rasplens.compile import CompileError, UndefinedValue, compile_program, rasp, run
from rasplens.errors import RaspLensError
from rasplens.learned import LearnedModel, untrained_like
from rasplens.model import StorageError
from rasplens.tasks import as_task, compile_for, get_task


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
    with pytest.raises(RaspLensError, match="turn them round") as error:
        compare(model, compiled, task=task)
    assert "\n" not in str(error.value)
    with pytest.raises(RaspLensError, match="turn them round"):
        rank([model], compiled, task=task)


@pytest.mark.parametrize("wrong", [lambda tokens: tokens, None, 3])
def test_what_is_no_program(wrong, compiled, task, unchecked):
    with pytest.raises(RaspLensError, match="must be a CompiledModel") as error:
        compare(wrong, compiled, task=task)
    assert "turn them round" not in str(error.value)
    with pytest.raises(RaspLensError, match="A program is an s-op"):
        run(wrong, "ab")


@pytest.mark.parametrize("wrong", [None, 7, ["copy"]])
def test_what_is_no_task(wrong, compiled, unchecked):
    with pytest.raises(RaspLensError, match="A task is a Task, or the name of one"):
        compare(compiled, compiled, task=wrong)


def test_a_program_that_the_task_does_not_have(compiled, task):
    with pytest.raises(RaspLensError, match=r"has no program 'ofset'\. It has offset, induction"):
        compare("ofset", compiled, task=task)


def test_programs_need_not_be_compiled_before(compiled, task):
    for program in ("offset", task.programs["offset"]):
        assert compare(program, compiled, task=task, config="quick").verdict.answer == "implements"
    assert_implements(compiled, "offset", task)


def test_tasks_go_by_name(compiled):
    task = as_task("copy")
    assert task.name == "copy"
    assert as_task(task) is task
    assert compile_for("copy", "offset").inputs.vocab == task.vocab


def test_a_rule_may_leave_out_the_tokens(compiled, task):
    assert_head_attends(compiled, 0, 0, lambda key, query: key == query - 2, task, queries=task.loss_positions)
    assert_head_attends(compiled, 0, 0, lambda k, q, *rest: k == q - 2, task, queries=task.loss_positions)
    with pytest.raises(RaspLensError, match="called with key, query"):
        assert_head_attends(compiled, 0, 0, lambda key: True, task)


def test_what_holds_no_comparison(tmp_path):
    binary = tmp_path / "weights.bin"
    binary.write_bytes(bytes(range(256)) * 1_000)
    with pytest.raises(StorageError, match="holds no valid comparison") as error:
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
