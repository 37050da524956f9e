from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lab.labelled.labelled_pairs import near_pairs
from lab.labelled.measure import observe
from lab.labelled.random_programs import (
    ALL_INPUTS,
    CHANGES,
    LENGTH,
    N_PROGRAMS,
    NEARLY,
    random_program,
    random_programs,
)
from lab.labelled.random_steps import N_VALUES, Step, built, values
from rasplens.compare.verdict.verdict import IMPLEMENTS
from rasplens.compile import compile_program, run, verify


@pytest.fixture(scope="module")
def programs():
    return list(random_programs())


@pytest.mark.slow
def test_there_are_as_many_as_were_asked_for_and_no_two_are_alike(programs):
    assert [one.number for one in programs] == list(range(N_PROGRAMS))
    assert len({values(one.step, ALL_INPUTS).tobytes() for one in programs}) == N_PROGRAMS
    assert len({one.step.kind for one in programs}) == 7


def test_a_program_depends_on_its_number_and_seed_alone(programs):
    assert random_program(7) == programs[7]
    assert random_program(7, seed=1) != programs[7]
    assert list(random_programs(3)) == programs[:3]


def test_the_near_program_differs_on_few_inputs_and_on_some(programs):
    for one in programs:
        own, near = values(one.step, ALL_INPUTS), values(one.near, ALL_INPUTS)
        assert (own != near).any(axis=1).mean() == one.apart
        assert 0 < one.apart < NEARLY
    counts = Counter(one.change for one in programs)
    assert set(counts) == set(CHANGES)
    assert counts["cell"] > 40


def test_answers_depend_on_more_than_the_own_token_and_position(programs):
    for one in programs:
        answers = values(one.step, ALL_INPUTS)
        at = [
            np.unique(answers[ALL_INPUTS[:, position] == token, position])
            for position in range(LENGTH)
            for token in range(N_VALUES)
        ]
        assert max(map(len, at)) > 1


def test_each_change_makes_one_little_difference():
    pair = Step("pair", (Step("tokens"), Step("places")), (0, 1, 2) * 3)
    cells = list(CHANGES["cell"](pair))
    assert len(cells) == 9 * 2
    assert all(sum(a != b for a, b in zip(one.table, pair.table, strict=True)) == 1 for one in cells)
    reads = list(CHANGES["read"](pair))
    assert reads == [replace(pair, reads=(Step("places"),) * 2), replace(pair, reads=(Step("tokens"),) * 2)]
    exceptions = list(CHANGES["exception"](pair))
    own = values(pair, ALL_INPUTS)
    ends = [ALL_INPUTS[(values(one, ALL_INPUTS) != own).any(axis=1)][:, 2:] for one in exceptions]
    assert len(ends) == 27
    assert {tuple(np.unique(rows, axis=0)[0]) for rows in ends if len(np.unique(rows, axis=0)) == 1} == set(
        np.ndindex(3, 3, 3)
    )


@pytest.mark.slow
def test_programs_mean_what_their_values_say(programs):
    some = ALL_INPUTS[::40]
    for one in programs:
        for step in (one.step, one.near):
            program = built(step, one.name)
            np.testing.assert_array_equal(values(step, some), [run(program, row) for row in some.tolist()])


def test_programs_compile_small_and_to_what_they_mean(programs):
    for one in programs[::50]:
        circuit = one.circuit()
        task = circuit.task()
        assert task.n_ctx == LENGTH
        sides = [
            compile_program(build(), task.vocab, task.n_ctx) for build in (circuit.program, circuit.alternative)
        ]
        assert max(side.transformer.config.d_model for side in sides) < 120
        assert all(verify(side).ok for side in sides)
        assert sides[0].heads
        first, second = (task.answers(side, ALL_INPUTS) for side in sides)
        np.testing.assert_array_equal(first, task.target(ALL_INPUTS))
        assert (first == second).all(axis=1).mean() == pytest.approx(circuit.share)


@pytest.mark.parametrize(
    "number",
    [
        3,  # another answer on inputs of which the task holds out all
        # a variable that the search finds on three quarters of the pairs, in the compiled model as well
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(6, marks=pytest.mark.slow),  # a head that changes no answer
        pytest.param(4, marks=pytest.mark.slow),  # another answer at one position of four inputs
    ],
)
def test_a_program_is_recognised_and_not_taken_for_one_that_answers_nearly_alike(number):
    for labelled in near_pairs(random_program(number).circuit(), 0):
        if labelled.kind != "disguised":
            said = observe(labelled, 0, "quick")
            assert (said["verdict"] == IMPLEMENTS) == labelled.same, said["reasons"]
