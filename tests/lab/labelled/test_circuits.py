"""The hard families: equal answers, or the share that is stated, and inside what each family says."""

import functools
import itertools

import numpy as np
import pytest
from small_configs import BRIEF

from lab.labelled.circuits import CIRCUITS, FAMILIES, HARD
from rasplens.compare import compare
from rasplens.compile import compile_program

MOST_INPUTS = 1_300


@functools.cache
def made(name):
    """The task, all of its inputs or as many as can be tried, and both compiled programs."""
    task = HARD[name].task()
    if HARD[name].family == "right only where inputs happen not to tell":
        drawn = np.concatenate([task.held_out, task.sample(np.random.default_rng(0), MOST_INPUTS)])
        ids = np.unique(drawn, axis=0)
    else:
        ids = np.array(list(itertools.product(range(len(task.vocab)), repeat=task.n_ctx)))
    sides = [
        compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
        for build in (HARD[name].program, HARD[name].alternative)
    ]
    return task, ids, sides


def of(family):
    return [name for name, circuit in HARD.items() if circuit.family == family]


@functools.cache
def patterns(name):
    """By side: `[head, input, query, key]`, of the positions of the sequence."""
    task, ids, sides = made(name)
    found = []
    for side in sides:
        _, cache = side.transformer.run_with_cache(side.encode(task.sequences(ids[:100])))
        at = slice(side.offset, None)
        found.append(
            np.array([cache[f"blocks.{layer}.attn.hook_pattern"][:, head, at, at] for layer, head in side.heads])
        )
    return found


def test_every_family_has_three_circuits_with_names_of_their_own():
    assert len(FAMILIES) == 11
    assert all(len(of(family)) >= 3 for family in FAMILIES)
    assert not set(HARD) & set(CIRCUITS)
    assert {circuit.family for circuit in CIRCUITS.values()} == {"plain"}


@pytest.mark.parametrize("name", HARD)
def test_answers_are_equal_on_the_stated_share_of_all_inputs(name):
    task, ids, sides = made(name)
    assert len(ids) < MOST_INPUTS
    first, second = (task.answers(side, ids) for side in sides)
    np.testing.assert_array_equal(first, task.target(ids))
    assert (first == second).all(axis=1).mean() == HARD[name].share
    assert (HARD[name].share == 1) is (HARD[name].family != "right only on part of the inputs")


@pytest.mark.parametrize("name", HARD)
def test_compiled_and_interpreted_programs_say_the_same(name):
    task, ids, sides = made(name)
    some = ids[:: len(ids) // 40 + 1]
    for side, build in zip(sides, (HARD[name].program, HARD[name].alternative), strict=True):
        np.testing.assert_array_equal(task.answers(side, some), task.answers(build(), some))


@pytest.mark.parametrize("name", HARD)
def test_circuits_are_small_and_differ_inside(name):
    task, _, sides = made(name)
    assert 4 <= task.n_ctx <= 7
    assert 2 <= len(task.vocab) <= 6
    assert len(task.held_out) >= 20
    first, second = (side.transformer for side in sides)
    assert max(first.config.d_model, second.config.d_model) < 120
    alike = first.config == second.config and all(
        np.array_equal(array, second.weights[key]) for key, array in first.weights.items()
    )
    assert not alike
    assert sides[0].output != sides[1].output


@pytest.mark.parametrize("name", [*of("same attention, other variables"), "sum_of_three", "highest_of_three"])
def test_heads_attend_alike(name):
    first, second = patterns(name)
    apart = np.abs(first[:, None] - second[None]).max(axis=(2, 3, 4))
    assert (apart.min(axis=0) < 1e-6).all()
    assert (apart.min(axis=1) < 1e-6).all()


@pytest.mark.parametrize("name", of("uniform attention both"))
def test_heads_attend_to_everything(name):
    for side in patterns(name):
        np.testing.assert_allclose(side, 1 / side.shape[-1], atol=1e-3)


@pytest.mark.parametrize("name", [*of("width against mean"), *of("looking against counting")])
def test_one_side_measures_by_the_bos_and_the_other_does_not(name):
    by_bos = [any("attention on BOS" in head for head in side.heads.values()) for side in made(name)[2]]
    assert sorted(by_bos) == [False, True]


@pytest.mark.parametrize("name", [*of("superset of the true selector"), *of("subset of the true selector")])
def test_one_selector_contains_the_other(name):
    less, more = (side > 1e-4 for side in patterns(name))
    if HARD[name].family.startswith("subset"):
        less, more = more, less
    assert len(less) == 1
    contains = [(less[0] <= one).all() and (less[0] != one).any() for one in more]
    assert any(contains)


@pytest.mark.parametrize("name", of("relay over another position"))
def test_relays_look_elsewhere_in_both_steps(name):
    first, second = patterns(name)
    assert len(first) == len(second) == 2
    assert (np.abs(first - second).max(axis=(1, 2, 3)) > 0.9).all()


@pytest.mark.parametrize("name", of("right only where inputs happen not to tell"))
def test_on_other_inputs_the_rules_differ(name):
    task, _, sides = made(name)
    ids = np.random.default_rng(0).integers(0, len(task.vocab), (300, task.n_ctx))
    first, second = (task.answers(side, ids) for side in sides)
    assert (first != second).any(axis=1).mean() > 0.2


@pytest.mark.slow
def test_a_hard_circuit_can_be_compared():
    task, _, (program, alternative) = made("count")
    found = compare(program, alternative, task=task, config=BRIEF)
    assert found.axis("behaviour").score == pytest.approx(1)
