"""Sites that are chosen by training, and models that are trained with nodes elsewhere."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.compare.discovery.cases import siit_case
from rasplens.compile import programs, rasp
from rasplens.errors import RaspLensError
from rasplens.learned import SIITRecipe, learn_sites, ordinary_architecture, train_to_implement
from rasplens.learned.errors import TrainingError
from rasplens.learned.siit.circuit import Node, stored_circuit
from rasplens.learned.siit.interventions import NodeInterchange, runner
from rasplens.learned.siit.placement import could_stand_for
from rasplens.learned.siit.soft_sites import Mixture
from rasplens.learned.siit.training import untrained_behind_bos
from rasplens.model import StorageError
from rasplens.tasks import build_task, task_from_program

TINY = SIITRecipe(steps=4, cycles=1, batch_size=8, warmup=1, pool=60)


def test_without_room_it_is_refused_before_any_training(task, compiled):
    shape = ordinary_architecture(compiled)
    with pytest.raises(RaspLensError, match="8 nodes are no room for the program's 3 parts, each behind what it"):
        learn_sites(compiled, task, replace(shape, d_mlp=0), TINY)


def test_all_of_a_share_is_an_interchange_and_none_is_nothing(task, compiled, parts, nodes):
    model = untrained_behind_bos(ordinary_architecture(compiled), compiled, task, 0)
    run, weights = runner(model, nodes), {name: jnp.asarray(array) for name, array in model.weights.items()}
    ids = jnp.asarray(task.held_out[:6])
    clean, given = run(weights, ids)
    source = jnp.tile(jnp.roll(jnp.arange(6), 1), (len(parts), 1))
    taken = jnp.asarray(np.random.default_rng(0).random((len(parts), *ids.shape)) < 0.5)
    wanted = [nodes.index(node) for node in (Node(0, 2), Node(0), Node(1, 1))]
    shares = jnp.zeros((len(parts), len(nodes))).at[jnp.arange(len(parts)), jnp.asarray(wanted)].set(1.0)
    possible = could_stand_for(parts, nodes)
    mixed, _ = run(weights, ids, Mixture(taken, source, shares, possible), given)
    hard = NodeInterchange(
        jnp.zeros((len(nodes), *ids.shape), bool).at[jnp.asarray(wanted)].set(taken),
        jnp.zeros((len(nodes), 6), int).at[jnp.asarray(wanted)].set(source),
    )
    np.testing.assert_allclose(mixed, run(weights, ids, hard, given)[0], atol=1e-5)
    assert np.abs(mixed - clean).max() > 1e-3
    unmoved, _ = run(weights, ids, Mixture(taken, source, 0 * shares, possible), given)
    np.testing.assert_allclose(unmoved, clean, atol=1e-6)


@pytest.mark.slow
def test_shares_are_of_nodes_that_could_stand_for_the_part_and_add_up(task, compiled, parts):
    seen = []
    shape = ordinary_architecture(compiled, d_model=16)
    found = learn_sites(compiled, task, shape, TINY, progress=lambda now: seen.append(now.step))
    assert seen == [4]
    np.testing.assert_allclose(found.shares.sum(axis=1), 1, atol=1e-5)
    assert not found.shares[~could_stand_for(parts, found.nodes)].any()
    assert set(found.circuit.values()) == set(parts)
    rows = {
        part: dict(zip(found.nodes, shares, strict=True)) for part, shares in zip(parts, found.shares, strict=True)
    }
    least = min(rows[part][node] for node, part in found.circuit.items())
    assert found.least_share == pytest.approx(least)
    assert repr(found).endswith(f"least share {least:.3f}>")
    assert set(found.losses) == {"behaviour", "interchange", "strict", "crowding"}
    assert all(np.isfinite(value) for value in found.losses.values())


@pytest.mark.slow
def test_a_model_is_trained_with_nodes_of_one_s_own_choice_and_read_again(task, compiled, parts, tmp_path):
    moved = dict(zip((Node(0, 2), Node(1), Node(2, 3)), parts, strict=True))
    shape = replace(ordinary_architecture(compiled, d_model=32), n_layers=3)
    recipe = SIITRecipe(steps=1_000, cycles=1, batch_size=64, learning_rate=5e-3, warmup=50, pool=500)
    model = train_to_implement(compiled, task, shape, recipe, circuit=moved)
    assert min(model.accuracy.least.values()) > 0.9
    assert set(model.accuracy.interchange) == {"L0H2", "L1 MLP", "L2H3"}
    model.save(tmp_path / "moved.safetensors")
    case = siit_case(compiled, task, path=tmp_path / "moved.safetensors", marks={})
    assert {"L0H2->L1 MLP", "L1 MLP->L2H3.v"} <= case.edges
    assert case.circuit == moved


def test_shares_of_one_node_add_up_whatever_their_order():
    value, given = jnp.full((2, 1, 1), 1.0), jnp.asarray([[[2.0]], [[4.0]]])
    taken, source = jnp.ones((2, 2, 1), bool), jnp.asarray([[0, 0], [1, 1]])
    shares, possible = jnp.asarray([[0.5], [0.25]]), np.ones((2, 1), bool)
    one = Mixture(taken, source, shares, possible).patched(0, value, given, None)
    other = Mixture(taken, source[::-1], shares[::-1], possible).patched(0, value, given, None)
    np.testing.assert_allclose(one.ravel(), 1 + 0.5 * (2 - 1) + 0.25 * (4 - 1))
    np.testing.assert_allclose(other, one)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"circuit": {"L0H0": "previous"}}, "A circuit maps nodes"),
        ({"recipe": {"steps": 3}}, "A recipe is a SIITRecipe"),
        ({"architecture": {"n_layers": 2}}, "An architecture is an Architecture"),
    ],
)
def test_what_is_no_circuit_recipe_or_architecture_is_refused(task, compiled, wrong, message):
    with pytest.raises((RaspLensError, TypeError), match=f"{message}|[Tt]ype-check"):
        train_to_implement(compiled, task, **wrong)


def test_a_circuit_of_another_program_is_refused(task, compiled, parts):
    with pytest.raises(
        RaspLensError, match=r"stands for 'previous' \(L0H0\)\. It has to stand for 'again' \(L1H0\)"
    ):
        train_to_implement(compiled, task, circuit={Node(0, 0): parts[0]})
    with pytest.raises(RaspLensError, match="stands for nothing"):
        train_to_implement(compiled, task, circuit={})
    at_a_head = dict(zip((Node(0, 0), Node(0, 1), Node(1, 0)), parts, strict=True))
    with pytest.raises(RaspLensError, match=r"L0H1 cannot stand for 'is_same' \(L0 MLP\), which needs an MLP"):
        train_to_implement(compiled, task, circuit=at_a_head)


def test_a_part_before_what_it_reads_is_refused(task, compiled, parts):
    early = dict(zip((Node(1, 0), Node(0), Node(1, 1)), parts, strict=True))
    message = "L0 MLP cannot stand for 'is_same' .*: it reads 'previous' .*, and L1H0, .* is not before it"
    with pytest.raises(RaspLensError, match=message):
        train_to_implement(compiled, task, circuit=early)


def test_sites_are_only_searched_where_there_are_any_and_answers_are_labels():
    with pytest.raises(RaspLensError, match="computes nothing in a head or an MLP"):
        learn_sites(rasp.tokens, task_from_program(rasp.tokens, "ab", 6), recipe=TINY)

    def seen(tokens):
        return [set(tokens[: i + 1]) for i in range(4)]

    labels = build_task("seen", "{x:4}", tokens="abc", answers=seen, readout="labels")
    with pytest.raises(RaspLensError, match="those of 'seen' are not"):
        learn_sites(programs.histogram(), labels, recipe=TINY)


@pytest.mark.slow
def test_a_search_whose_loss_is_no_number_is_refused(task, compiled):
    recipe = SIITRecipe(steps=20, batch_size=8, warmup=0, learning_rate=1e30, pool=50)
    with pytest.raises(TrainingError, match=r"The loss became .*Lower the learning rate"):
        learn_sites(compiled, task, ordinary_architecture(compiled, d_model=16), recipe)


@pytest.mark.slow
def test_a_training_is_not_gone_on_with_at_other_nodes(task, compiled, parts, tmp_path):
    shape, state = ordinary_architecture(compiled, d_model=16), tmp_path / "state.safetensors"
    train_to_implement(compiled, task, shape, TINY, state_path=state)
    moved = dict(zip((Node(0, 2), Node(0), Node(1, 3)), parts, strict=True))
    with pytest.raises(StorageError, match="circuit"):
        train_to_implement(compiled, task, shape, TINY, circuit=moved, state_path=state)


def test_a_stored_circuit_is_that_of_the_program_or_none(compiled, parts):
    shape = untrained_behind_bos(ordinary_architecture(compiled), compiled, task_of(compiled), 0).config
    names = {"L0H1": ["previous"], "L0 MLP": ["is_same"], "L1H3": ["again"]}
    assert stored_circuit(compiled, shape, names) == dict(
        zip((Node(0, 1), Node(0), Node(1, 3)), parts, strict=True)
    )
    assert stored_circuit(compiled, shape, {**names, "L1H3": ["other"]}) is None
    assert stored_circuit(compiled, shape, {**names, "L9H3": ["again"]}) is None


def task_of(compiled):
    return task_from_program(compiled.program, "abc", 6, causal=True)
