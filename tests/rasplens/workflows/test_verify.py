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
    with pytest.raises(CompileError, match=r"'offset' is WRONG: on \[.*\] the program says"):
        verify_for_task(wrong, task)
