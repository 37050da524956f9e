"""Where no intervention tells what a selector does: heads that attend like it, or nothing."""

import pytest

from rasplens.compare import CompareConfig, compare
from rasplens.compare.claims.attention import AttendsLike
from rasplens.compare.claims.trials.judging import OPEN
from rasplens.compare.study import Study
from rasplens.compare.verdict.headline import headline
from rasplens.compare.verdict.verdict import IMPLEMENTS, UNKNOWN
from rasplens.compile.rasp import Aggregate, Map, Select, SelectorWidth, tokens
from rasplens.tasks import compile_for, task_from_program

SETTINGS = CompareConfig(n_inputs=200, n_fitting=60, questions=200, enumerated=0)


@pytest.fixture(scope="module")
def any_a():
    """Whether an `a` stands anywhere, by looking there and by counting, and the task."""
    of_a = Select(tokens, tokens, lambda key, query: key == "a")
    looking = (Aggregate(of_a, Map(lambda t: 1, tokens), default=0) == 1).named("by_looking")
    counting = (SelectorWidth(of_a) > 0).named("by_counting")
    task = task_from_program(looking, "abcd", 5)
    return {one.name: compile_for(task, one) for one in (looking, counting)}, task


@pytest.mark.slow
@pytest.mark.parametrize("name", ["by_looking", "by_counting"])
@pytest.mark.parametrize("as_part", [False, True])
def test_counting_and_looking_are_not_taken_for_each_other(any_a, name, as_part):
    """As a part, "keys decide" held of both, and nothing else could be asked: each was said to implement both."""
    sides, task = any_a
    for other, model in sides.items():
        found = compare(sides[name], model, task=task, config=SETTINGS, as_part=as_part).verdict
        same = name == other
        assert found.answer == (IMPLEMENTS if same else UNKNOWN)


def test_of_a_large_model_such_a_selector_is_left_open(any_a, monkeypatch):
    sides, task = any_a
    monkeypatch.setattr(Study, "is_large", True)
    found = compare(sides["by_counting"], sides["by_counting"], task=task, config=SETTINGS, as_part=True)
    (left,) = [claim for claim in found.verdict.all_claims if isinstance(claim.subject, AttendsLike)]
    assert (left.status, left.subject.heads, found.verdict.answer) == (OPEN, (), UNKNOWN)
    for said in (*found.verdict.reasons, *headline("it", found.verdict).reasons, found._repr_html_()):
        assert "nan" not in said.replace("NaN", "")
    assert found.rank == found.rank  # no NaN
