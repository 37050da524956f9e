"""Inputs and models of which little can be said get an honest answer."""

import pytest

from rasplens.compare import compare
from rasplens.compile import compile_program, rasp
from rasplens.learned import Architecture, untrained
from rasplens.tasks import task_from_program


def test_a_program_with_nothing_between_input_and_output_claims_that_nothing_is_read(brief):
    """A map of each token: no head, no edge, no variable on the way."""
    program = rasp.Map(str.upper, rasp.tokens).named("upper")
    task = task_from_program(program, "abc", 5)
    compiled = compile_program(program, task.vocab, task.n_ctx)
    found = compare(compiled, compiled, task=task, config=brief)
    assert found.verdict.levels == {
        "answers": "implements", "variables": "not testable", "routes": "implements"
    }  # fmt: skip
    assert [axis.name for axis in found.axes if axis.has_score] == ["behaviour"]


@pytest.mark.slow
def test_a_model_that_is_never_right_implements_nothing(induction, task, brief):
    model = untrained(Architecture(n_layers=2, n_heads=2, d_model=12, d_head=6), task, seed=3)
    found = compare(induction, model, task=task, config=brief)
    assert found.verdict.answer == "does not"
    assert found.verdict.reasons[0].startswith("answers: answers, held out: fails")


def test_vocabularies_that_do_not_match_are_refused(induction, task):
    other = task_from_program(rasp.Map(str.upper, rasp.tokens).named("upper"), "xyz", 5)
    with pytest.raises(ValueError, match=r"token .* of 'upper'.*vocabulary"):
        compare(induction, induction, task=other)
