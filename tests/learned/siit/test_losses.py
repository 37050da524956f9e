import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rasplens.learned import SIITRecipe
from rasplens.learned.siit.circuit import circuit_of, nodes_of
from rasplens.learned.siit.interventions import oracle, runner
from rasplens.learned.siit.losses import SIITTarget, cross_entropy, inputs_of, losses, random_interchange, weighed


@pytest.mark.slow
def test_answers_that_the_program_does_not_have_or_nobody_asks_for_do_not_count():
    logits = jnp.asarray([[[2.0, 0.0], [0.0, 9.0]]])
    known = -np.log(np.exp(2) / (np.exp(2) + 1))
    both, first = jnp.asarray([[True, True]]), jnp.asarray([[True, False]])
    assert cross_entropy(logits, jnp.asarray([[0, -1]]), both) == pytest.approx(known)
    assert cross_entropy(logits, jnp.asarray([[0, 0]]), first) == pytest.approx(known)
    assert cross_entropy(logits, jnp.asarray([[0, 0]]), both) > 4
    assert cross_entropy(logits, jnp.asarray([[-1, -1]]), both) == 0
    assert cross_entropy(logits, jnp.asarray([[0, 0]]), ~both) == 0


@pytest.mark.slow
def test_every_input_has_interventions_of_its_own():
    n_nodes, n, n_pos = 3, 2_000, 5
    taken, source = map(np.asarray, random_interchange(jax.random.key(0), n_nodes, n, n_pos))
    assert (taken.shape, source.shape) == ((n_nodes, n, n_pos), (n_nodes, n))
    nodes = taken.any(axis=2)
    assert 0.5 < (nodes.sum(axis=0) == 1).mean() < 0.75  # half of them by choice, others by chance
    assert 0.45 < taken.all(axis=2)[nodes].mean() < 0.6
    assert nodes.mean(axis=1) == pytest.approx(np.full(n_nodes, 0.5 * 0.5 + 0.5 / n_nodes), abs=0.05)
    assert 0.4 < (source[0] == source[1]).mean() < 0.6  # from one of two other inputs
    assert ((source >= 0) & (source < n)).all()


def test_losses_are_weighed_by_the_recipe():
    found = {"behaviour": jnp.asarray(1.0), "interchange": jnp.asarray(2.0), "strict": jnp.asarray(4.0)}
    assert weighed(found, SIITRecipe(behaviour=1.0, interchange=10.0, strict=0.5)) == pytest.approx(23.0)


@pytest.mark.slow
@pytest.mark.parametrize("names", [("previous", "is_same", "again"), ("again", "previous", "is_same")])
def test_the_order_of_a_circuit_means_nothing(task, compiled, exact, names):
    """The compiled model itself has no loss; with two variables exchanged it has."""
    by_name = {part.variables[0]: (node, part) for node, part in circuit_of(compiled).items()}
    circuit = dict(by_name[name] for name in names)
    assert _loss_under_interchange(task, compiled, exact, circuit) < 0.01
    (first, one), (second, other) = by_name["previous"], by_name["again"]
    exchanged = {**circuit, first: other, second: one}
    assert _loss_under_interchange(task, compiled, exact, exchanged) > 1


@pytest.mark.slow
def test_the_rest_may_be_resampled_under_interchange_as_well(task, compiled, exact):
    """The compiled model does without it; a circuit without its last head does not."""
    circuit = circuit_of(compiled)
    assert _loss_under_interchange(task, compiled, exact, circuit, both=1.0) < 0.01
    without_last = {node: part for node, part in circuit.items() if "again" not in part.variables}
    assert len(without_last) < len(circuit)
    assert _loss_under_interchange(task, compiled, exact, without_last) < 0.01
    assert _loss_under_interchange(task, compiled, exact, without_last, both=1.0) > 1


def _loss_under_interchange(task, compiled, model, circuit, both=0.0):
    """With logits of twenty times the size, so that right answers cost nothing."""
    nodes = nodes_of(model.config)
    weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
    weights["unembed.W_U"] *= 20
    untold = [jnp.zeros((60, task.n_ctx, 0))] * len(circuit)
    target = SIITTarget(circuit, oracle(compiled, circuit, task), lambda ids: untold)
    found = losses(runner(model, nodes), nodes, target, task, both)
    return float(found(weights, inputs_of(task, task.held_out[:60]), jax.random.key(0))["interchange"])
