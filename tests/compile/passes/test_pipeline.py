"""Every pass alone keeps every program what it is, and none needs another."""

import numpy as np
import pytest

from rasplens.compile import CompileLimits, compile_program, programs, rasp, verify
from rasplens.compile.passes.pipeline import ALL_PASSES


def check(case, plain=None, **options):
    """Verifies a program, unless its weights are those of a model that other tests verify."""
    compiled = compile_program(rasp.causal(case.program), case.vocab, case.max_len, **case.options, **options)
    if plain is None or not has_same_weights(compiled.transformer, plain.transformer):
        found = verify(compiled)
        assert found.ok, (case, str(found))


def has_same_weights(first, second) -> bool:
    return first.config == second.config and all(
        np.array_equal(weight, second.weights[name]) for name, weight in first.weights.items()
    )


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ALL_PASSES)
def test_each_pass_alone_changes_no_answer(every_case, compiled_case, chosen):
    for name, case in every_case.items():
        check(case, compiled_case(name, optimize=False), optimize=[chosen])


@pytest.mark.slow
@pytest.mark.parametrize("left_out", ALL_PASSES)
def test_no_pass_needs_another(every_case, compiled_case, left_out):
    for name, case in every_case.items():
        passes = [chosen for chosen in ALL_PASSES if chosen != left_out]
        check(case, compiled_case(name, optimize=True), optimize=passes)


def test_where_values_are_not_found_by_running_nothing_changes_either(every_case, compiled_case):
    """The passes as they meet large input spaces. Fused maps once had codes that their readers did not know."""
    for name, case in every_case.items():
        check(case, compiled_case(name, optimize=True), limits=CompileLimits(executed_inputs=0))


def test_the_same_program_gives_the_same_weights_twice():
    first, second = (compile_program(programs.sort_by_frequency(), "abc", 4).transformer for _ in range(2))
    assert has_same_weights(first, second)
