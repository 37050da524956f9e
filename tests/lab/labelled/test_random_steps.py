import numpy as np
import pytest

from lab.labelled.random_steps import KINDS, N_VALUES, Step, built, values
from rasplens.compile import run
from rasplens.compile.rasp import Map, SequenceMap

INPUTS = np.random.default_rng(3).integers(0, N_VALUES, (60, 5))


@pytest.mark.parametrize("table_of", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_means_what_its_expression_means(kind, table_of):
    rng = np.random.default_rng(table_of)
    start = [Step("tokens"), Step("places"), Step("map", (Step("tokens"),), (1, 2, 0))]
    reads = tuple(start[i] for i in rng.integers(0, 3, KINDS[kind].n_reads))
    step = Step(kind, reads, tuple(int(rng.integers(n)) for n in KINDS[kind].cells))
    found = values(step, INPUTS)
    assert set(np.unique(found)) <= set(range(N_VALUES))
    program = built(step, "whole")
    np.testing.assert_array_equal(found, [run(program, row) for row in INPUTS.tolist()])


def test_the_last_argument_runs_fastest():
    step = Step("pair", (Step("tokens"), Step("places")), (0, 0, 1, 0, 0, 0, 0, 0, 0))
    np.testing.assert_array_equal(values(step, np.array([[0, 0, 0, 1, 0]])), [[0, 0, 1, 0, 0]])


def test_steps_that_are_equal_are_one_expression():
    double = Step("pair", (Step("map", (Step("tokens"),), (1, 2, 0)),) * 2, (0,) * 9)
    program = built(double, "double")
    assert isinstance(program, SequenceMap)
    assert program.fst is program.snd
    assert isinstance(program.fst, Map)
    assert program.name == "double"
