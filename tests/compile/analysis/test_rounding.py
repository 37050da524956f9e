from dataclasses import replace

import numpy as np
import pytest
from rasp_examples import EQUAL, EVERYTHING

from rasplens.compile import CompileError, PrecisionError
from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.analysis.rounding import Rounding, check_precision, is_held_apart, roundings
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.ir import Domain, FiniteGraph
from rasplens.compile.rasp import Aggregate, LinearSequenceMap, Map, Where, numerical, tokens
from rasplens.compile.rasp.input_space import input_space


def analysed(program, vocab=(0, 1, 2), max_len=3) -> FiniteGraph:
    return reachable_values(build_graph(program), input_space(vocab, max_len))


def rounding(program, **options) -> Rounding:
    graph = analysed(program, **options)
    return roundings(graph)[graph.output]


def number(*values):
    """A number by token."""
    return numerical(Map(lambda t: values[t], tokens))


def test_a_number_that_is_written_is_rounded_relative_to_the_largest():
    assert rounding(number(3, -8, 0)) == Rounding(8, 4 * 2.0**-24 * 8)


def test_terms_that_cancel_leave_their_errors():
    large = number(10**6, 10**6 + 1, 0)
    difference = rounding(numerical(LinearSequenceMap(large, large, 1, -1)))
    assert difference.largest == 2 * (10**6 + 1)
    assert difference.error > rounding(large).error


def test_a_mean_and_a_choice_hand_on_the_larger_error():
    small, large = number(1, 2, 3), number(0, 5, 10**6)
    assert rounding(numerical(Aggregate(EVERYTHING, large))).error >= rounding(large).error
    assert rounding(numerical(Where(tokens == 0, small, large))).error >= rounding(large).error


def test_every_error_is_an_upper_bound_of_what_float32_does():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = [float(v) for v in rng.normal(0, 10.0 ** rng.uniform(-3, 6, 3))]
        factor = float(rng.normal())
        x, y = np.array(values, dtype=np.float32), np.float32(factor)
        exactly = np.subtract.outer(np.array(values), factor * np.array(values))
        found = np.abs(np.subtract.outer(x, y * x) - exactly).max()
        assert found <= rounding(numerical(LinearSequenceMap(number(*values), number(*values), 1, -factor))).error


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (number(2**24, 2**24 + 1, 0), "16777216 and 16777217.*float32"),
        (number(0, 1e-50, 0), "0 and 1e-50.*float32"),
        (number(0, 1e-8, 1), "0 and 1e-08.*float32"),
        (
            number(0, 10**9, 1),
            " 0 and 1,.*float32.*1e[+]09",
        ),
        (numerical(LinearSequenceMap(tokens, Map(lambda t: 10**9 + t, tokens), 0.5, 1)), "float32.*shift"),
    ],
)
def test_numbers_that_float32_cannot_hold_apart_are_refused(program, message):
    with pytest.raises(PrecisionError, match=message):
        check_precision(analysed(program))


def test_a_lone_value_is_refused_if_what_is_not_selected_drowns_it():
    """Unselected positions keep 1e-11 of the attention: of 1e20 that is 1e9."""
    graph = analysed(numerical(Aggregate(EQUAL, number(0, 10**20, 10**20))))
    mean = graph.variable(graph.output)
    only_zero = replace(graph, nodes=(*graph.nodes[:-1], replace(mean, domain=Domain((0,), is_partial=False))))
    with pytest.raises(PrecisionError, match=r"is 0, .*float32.*1e[+]20"):
        check_precision(only_zero)


def test_what_is_added_up_decides_what_is_held_apart():
    assert is_held_apart(1, 2**18)
    assert not is_held_apart(1, 2**20)


@pytest.mark.parametrize(
    "program", [number(0, 1, 2), number(5, 5, 5), number(1e-9, 3e-9, 2e-9), number(2**40, 0, 1e9)]
)
def test_numbers_that_float32_can_hold_apart_are_not(program):
    check_precision(analysed(program))


def test_a_precision_error_is_a_compile_error():
    assert issubclass(PrecisionError, CompileError)
    check_precision(analysed(numerical(Aggregate(EQUAL, number(0, 1, 2)))))


def test_the_gap_must_have_room_for_four_errors():
    """An error of 4 roundings of the largest, four times over: a 2^20th of the largest."""
    check_precision(analysed(number(0, 1, 2**20 - 2)))
    with pytest.raises(PrecisionError, match=r" 0 and 1,.*float32"):
        check_precision(analysed(number(0, 1, 2**20 + 2)))


def test_what_is_not_selected_adds_its_leak():
    large = number(0, 0, 10**20)
    assert rounding(numerical(Aggregate(EQUAL, large))).error - rounding(large).error == pytest.approx(1e9)
