"""Where a variable is used, by the program's weights."""

from rasplens.compare.config import CompareConfig
from rasplens.compare.discovery.cases import compiled_case
from rasplens.compare.discovery.variables.problem import stage, stages_read, variable_problems
from rasplens.compile import programs
from rasplens.compile.rasp import tokens
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


def test_where_some_have_read_it_and_others_have_not_it_is_neither():
    found = problems(programs.most_frequent(), "abc", 5)
    compiled = found["histogram"].pairing.compiled
    assert stages_read(compiled, "histogram") == [2, 4]  # by the attention of the second and of the third layer
    assert found["histogram"].sites == {
        "blocks.0.hook_resid_post": "used",
        "blocks.2.hook_resid_mid": "unused",
        "blocks.2.hook_resid_post": "unused",
    }
    assert list(found["highest_count"].sites.values()) == ["used", "used", "unused", "unused"]


def test_a_variable_that_an_mlp_or_the_logits_read():
    task = task_from_program(programs.frac_prevs((tokens == "x").named("is_x")), "abx", 4, causal=True)
    compiled = compile_for(task, optimize=False)
    assert stages_read(compiled, "is_x") == [2]
    assert stages_read(compiled, "tokens") == [1]
    assert stages_read(compiled, compiled.output) == [4]


def test_stages_are_states_of_the_stream_in_forward_order():
    assert [stage(f"blocks.0.hook_resid_{state}") for state in ("pre", "mid", "post")] == [0, 1, 2]
    assert stage("blocks.1.hook_resid_pre") == stage("blocks.0.hook_resid_post")


def test_a_variable_of_a_model_that_says_none_by_no_logit_can_be_interchanged():
    """Once, every pair with such an answer was left out, and so were all."""
    (found,) = problems(programs.detect_pattern("ab"), "abc", 5, causal=True).values()
    assert found.variable == "shift_by_1"
    columns, pairs = found.pairing.learned.vocabulary.columns, found.chosen
    assert (columns == -1).any()
    assert pairs.changes.any(axis=1).all()
    assert (columns[pairs.expected[pairs.changes | pairs.stays]] >= 0).all()
