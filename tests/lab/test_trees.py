"""Decision trees as programs."""

import numpy as np
import pandas as pd
import pytest

from lab.trees import _features, rows, summary, tree_program
from rasplens.compile import programs
from rasplens.tasks import compile_for, task_from_program
from rasplens.tasks.answers import compiled_codes


@pytest.mark.parametrize("causal", [False, True])
def test_the_program_of_a_tree_says_what_the_tree_says(causal):
    """On every input, also where a token that the tree asks for is not visible."""
    task = task_from_program(programs.histogram(), "abc", 4, causal=causal)
    ids = np.stack(np.meshgrid(*[np.arange(3)] * 4), axis=-1).reshape(-1, 4)
    program, tree = tree_program(task, ids, task.target(ids))
    assert 1 < tree.get_n_leaves() <= 64
    compiled = compile_for(task, program)
    codes = task.codes_of(compiled)[compiled_codes(compiled, task.sequences(ids), task.loss_positions)]
    np.testing.assert_array_equal(codes.ravel(), tree.predict(_features(task, ids)))


@pytest.mark.slow
def test_a_tree_for_a_counting_model_is_refused():
    """Its heads fetch single tokens, the model's head counts."""
    found = pd.DataFrame(rows("library", "histogram", "quick", 0)).assign(source="library", name="histogram")
    assert list(found["verdict"]) == ["does not"]
    assert "trees for 1 of 1 models" in summary(found)
