"""`rasplens verify`, in process, and the check before every comparison."""

import json
from dataclasses import replace

import pytest

from rasplens.compile import CompileError
from rasplens.model import Transformer
from rasplens.sources import reference
from rasplens.tasks import get_task
from rasplens.workflows.verify import verify_for_task


def test_nothing_is_compared_with_a_reference_that_is_wrong():
    task = get_task("copy", n_letters=3, block=2, length=6)
    compiled = reference(task, None)
    assert all(check.ok for check in verify_for_task(compiled, task).values())
    model = compiled.transformer
    weights = {name: array.copy() for name, array in model.weights.items()}
    weights["unembed.W_U"][:, 0] = weights["unembed.W_U"][:, 1]
    wrong = replace(compiled, transformer=Transformer(model.config, weights, model.mask))
    with pytest.raises(CompileError, match=r"'offset' is WRONG.*\[.*\]"):
        verify_for_task(wrong, task)


def test_verify_says_how_much_was_checked(cli, own_program):
    code, text, _ = cli("verify", "mine.py:histogram", "--vocab", "0..2", "--max-len", "4")
    assert code == 0
    assert "equal on all 120 inputs" in text
    code, text, _ = cli("verify", "copy", "--program", "induction", "--samples", "20", "--json")
    values = json.loads(text)
    assert (values["ok"], values["checked"], values["exhaustive"]) == (True, 20, False)
