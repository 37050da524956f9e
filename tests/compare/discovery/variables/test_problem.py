"""Where a variable is used, by the program's weights."""

import pytest

from rasplens.compare import study_of
from rasplens.compare.config import CompareConfig
from rasplens.compare.discovery.cases import compiled_case
from rasplens.compare.discovery.variables.problem import (
    sites_of,
    stage,
    stage_written,
    stages_read,
    variable_problems,
)
from rasplens.compile import programs
from rasplens.compile.rasp import tokens
from rasplens.errors import RaspLensError
from rasplens.learned import untrained_like
from rasplens.learned.siit.circuit import Node, circuit_of
from rasplens.model import Config, causal_mask
from rasplens.tasks import compile_for, task_from_program

SMALL = CompareConfig(n_inputs=100, n_fitting=200, interchange_pairs=40, pairs_tried=400, least_pairs=5)


def problems(program, vocab, max_len, causal=False, optimize=True):
    task = task_from_program(program, vocab, max_len, causal=causal)
    return {
        one.variable: one
        for one in variable_problems(compiled_case(compile_for(task, optimize=optimize), task), SMALL)
    }


def test_a_variable_is_used_until_it_is_read_first_and_unused_behind_the_last_reader(case):
    (found,) = variable_problems(case, SMALL)
    assert found.variable == "previous"
    assert found.sites == {"blocks.0.hook_resid_post": "used", "blocks.1.hook_resid_post": "unused"}


@pytest.mark.slow
def test_where_some_have_read_it_and_others_have_not_it_is_neither():
    found = problems(programs.most_frequent(), "abc", 5)
    compiled = found["histogram"].study.compiled
    assert stages_read(compiled, "histogram", 3) == [2, 4]  # by the attention of the second and of the third layer
    assert found["histogram"].sites == {
        "blocks.0.hook_resid_post": "used",
        "blocks.2.hook_resid_mid": "unused",
        "blocks.2.hook_resid_post": "unused",
    }
    assert list(found["highest_count"].sites.values()) == ["used", "used", "unused", "unused"]


def test_a_variable_that_an_mlp_or_the_logits_read():
    task = task_from_program(programs.frac_prevs((tokens == "x").named("is_x")), "abx", 4, causal=True)
    compiled = compile_for(task, optimize=False)
    assert stages_read(compiled, "is_x", 2) == [2]
    assert stages_read(compiled, "tokens", 2) == [1]
    assert stages_read(compiled, compiled.output, 2) == [4]


def test_where_other_nodes_stand_for_the_parts_it_is_they_that_write_and_read(compiled, task):
    """Of induction, the first head in the second layer of four, and the second one in the last."""
    first, second = circuit_of(compiled).values()
    moved = {Node(1, 2): first, Node(3, 0): second}
    assert stage_written(compiled, "previous", moved) == stage("blocks.1.hook_resid_mid")
    assert stages_read(compiled, "previous", 4, moved) == [stage("blocks.3.hook_resid_pre")]
    config = Config(
        n_layers=4, n_heads=4, d_model=8, d_head=2, n_ctx=5, d_vocab=3, d_vocab_out=task.n_logits, d_mlp=8
    )
    deep = untrained_like(config, causal_mask(4, 5), 0)
    found = sites_of(study_of(compiled, deep, task, SMALL, 0), "previous", moved)
    used, unused = (
        [point.removeprefix("blocks.") for point, use in found.items() if use == wanted]
        for wanted in ("used", "unused")
    )
    assert used == ["1.hook_resid_mid", "1.hook_resid_post", "2.hook_resid_mid", "2.hook_resid_post"]
    assert unused == ["3.hook_resid_mid", "3.hook_resid_post"]


def test_a_variable_that_nothing_reads_has_no_sites(compiled, task, monkeypatch):
    monkeypatch.setattr("rasplens.compare.discovery.variables.problem.stages_read", lambda *asked: [])
    with pytest.raises(RaspLensError, match="reads 'previous'"):
        sites_of(study_of(compiled, compiled, task, SMALL, 0), "previous")


def test_stages_are_states_of_the_stream_in_forward_order():
    assert [stage(f"blocks.0.hook_resid_{state}") for state in ("pre", "mid", "post")] == [0, 1, 2]
    assert stage("blocks.1.hook_resid_pre") == stage("blocks.0.hook_resid_post")


def test_a_variable_of_a_model_that_says_none_by_no_logit_can_be_interchanged():
    """Once, every pair with such an answer was left out, and so were all."""
    (found,) = problems(programs.detect_pattern("ab"), "abc", 5, causal=True).values()
    assert found.variable == "shift_by_1"
    columns, pairs = found.study.learned.vocabulary.columns, found.chosen
    assert (columns == -1).any()
    assert pairs.changes.any(axis=1).all()
    assert (columns[pairs.expected[pairs.changes | pairs.stays]] >= 0).all()
