"""The whole comparison, at its ceiling and on its floor."""

import pytest

from rasplens.compare import compare
from rasplens.compare.pipeline import STAGES
from rasplens.compile import compile_program
from rasplens.compile.rasp import Map, tokens


@pytest.fixture(scope="module")
def ceiling(induction, task):
    return compare(induction, induction, task=task, n_inputs=300)


@pytest.fixture(scope="module")
def floor(induction, noise, task):
    return compare(induction, noise, task=task, n_inputs=300)


def test_a_model_against_itself_is_at_the_ceiling_on_every_axis(ceiling):
    assert ceiling.agreement == 1
    best = ceiling.decodability_by_point().groupby("variable")["score"].max()
    assert (best == 1).all()
    matched = ceiling.attention[ceiling.attention["matched"]]
    assert matched["similarity"].min() > 0.999
    for way in ("zero", "mean"):
        assert ceiling.correlations[way].rho == pytest.approx(1)
    assert ceiling.heads["compiled"].equals(ceiling.heads["learned"])


def test_a_model_that_learned_nothing_is_on_the_floor(floor):
    assert floor.agreement < 0.5
    assert floor.accuracies["learned"].token < 0.5
    matched = floor.attention[floor.attention["matched"]]
    assert matched["content"].abs().max() < 0.05
    late = floor.decodability_by_point()
    late = late[late["variable"] == "induction"]
    assert (late["score"] - late[["chance", "untrained"]].max(axis=1)).max() < 0.15


def test_program_and_compiled_model_are_right_alike(ceiling, task, induction):
    assert ceiling.accuracies["program"] == ceiling.accuracies["compiled"] == ceiling.accuracies["learned"]
    assert ceiling.program == "induction"
    assert ceiling.learned_origin == "CompiledModel"


def test_every_stage_is_announced(offset, noise, task):
    stages = []
    compare(offset, noise, task=task, n_inputs=60, progress=stages.append)
    assert stages == list(STAGES)


def test_the_same_seed_gives_the_same_comparison(offset, noise, task):
    first, again, other = (compare(offset, noise, task=task, n_inputs=60, seed=s) for s in (0, 0, 1))
    assert first.to_json() == again.to_json()
    assert first.to_json() != other.to_json()


def test_a_program_without_heads_is_compared_all_the_same(task, noise):
    """No head acts and nothing can be ablated: the tables are empty, and everything that reads them copes."""
    compiled = compile_program(Map(str.lower, tokens).named("lower"), task.vocab, task.n_ctx)
    result = compare(compiled, noise, task=task, n_inputs=40)
    assert result.attention.empty
    assert "no attention heads" in " ".join(result.findings)


def test_too_few_inputs_are_refused(task, induction, noise):
    with pytest.raises(ValueError, match="at least 10 inputs for its probes; got 3"):
        compare(induction, noise, task=task, n_inputs=3)
