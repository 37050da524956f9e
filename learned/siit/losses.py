"""The losses of strict interchange-intervention training, from one clean and two patched forward passes.

Source: Geiger et al. 2022, "Inducing Causal Structure for Interpretable Neural Networks" (behaviour and
interchange); Gupta et al. 2024, "InterpBench" (arXiv 2407.14494, section 3: strictness). There, one variable is
interchanged in a step, at all positions, and one node outside of the circuit is resampled. Here every input has
interventions of its own: some nodes, from different inputs, at all positions or at some. What is trained under
more of them at once is right under those that a comparison asks about, two variables together among them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from rasplens.learned.siit.circuit import Circuit, Node
from rasplens.learned.siit.interventions import NodeInterchange, Runner
from rasplens.learned.siit.recipe import SIITRecipe
from rasplens.tasks import Task
from rasplens.tasks.task import Ids

SINGLY = 0.5
"""How often a single node is interchanged, and else any number of them."""

EVERYWHERE = 0.5
"""How often a node is interchanged at all positions, and else at some, each with even odds."""

HELD = 0.5
"""How often the rest, under interchange, is held as it is on the input itself; else it is of other inputs."""


class InputBatch(NamedTuple):
    """A batch of inputs that a model is trained on.

    Attributes:
        ids: Of their tokens: `[batch, pos]`.
        asked: Which answers the task asks for: `[batch, loss_pos]`.
    """

    ids: jax.Array
    asked: jax.Array

    def some(self, key: jax.Array, n: int) -> "InputBatch":
        """Random ones of them."""
        rows = jax.random.randint(key, (n,), 0, len(self.ids))
        return InputBatch(self.ids[rows], self.asked[rows])


def inputs_of(task: Task, ids: Ids) -> InputBatch:
    """A task's inputs."""
    return InputBatch(jnp.asarray(ids), jnp.asarray(task.is_asked(ids)))


@dataclass(frozen=True, eq=False)
class SIITTarget:
    """What a model is trained to compute, and in which nodes.

    Attributes:
        circuit: The nodes that are to compute the program's variables.
        answers: The program, under interchange of the circuit's nodes in their order; see `oracle`.
        variables: What the circuit's nodes should give, in their order; see the function `variables`.
    """

    circuit: Circuit
    answers: Callable[..., jax.Array]
    variables: Callable[..., list[jax.Array]]


def losses(
    run: Runner, nodes: Sequence[Node], target: SIITTarget, task: Task, both: float = 0.0
) -> Callable[..., dict[str, jax.Array]]:
    """By name, the mean cross-entropy in nats: of behaviour, under interchange, and with the rest resampled.

    The fourth, `readout`, is the mean squared error of a linear readout of every node's variable, as a share of
    the variable's variance. The published training has none. Where a shortcut gives the answers first,
    interchange alone stays on a plateau.

    Args:
        run: The model.
        nodes: All nodes of the model.
        target: What some of them should compute.
        task: Where answers are read.
        both: How often the rest is resampled under interchange as well; see `SIITRecipe`.
    """
    circuit, answers = target.circuit, target.answers
    inside = jnp.asarray([nodes.index(node) for node in circuit])
    outside = jnp.asarray([i for i, node in enumerate(nodes) if node not in circuit])
    read = jnp.asarray(task.loss_positions)

    def found(weights: dict[str, jax.Array], inputs: InputBatch, key: jax.Array) -> dict[str, jax.Array]:
        ids, asked = inputs
        of_circuit, of_rest = jax.random.split(key)
        clean, given = run(weights, ids)
        drawn = {"interchange": (inside, of_circuit), "strict": (outside, of_rest)}
        result = {"behaviour": cross_entropy(clean[:, read], answers(ids), asked)}
        errors = [
            _readout_error(weights, given, node, wanted)
            for node, wanted in zip(circuit, target.variables(ids), strict=True)
        ]
        result["readout"] = jnp.stack(errors).mean()
        for name, (those, own_key) in drawn.items():
            if not len(those):
                continue
            part = random_interchange(own_key, len(those), *ids.shape)
            wanted = answers(ids, part) if name == "interchange" else answers(ids)
            everywhere = _of_all_nodes(part, those, len(nodes))
            if name == "interchange" and both and len(outside):
                everywhere = _and_the_rest(everywhere, outside, both, jax.random.fold_in(own_key, 1))
            result[name] = cross_entropy(run(weights, ids, everywhere, given)[0][:, read], wanted, asked)
        return result

    return found


def _of_all_nodes(part: NodeInterchange, those: jax.Array, n_nodes: int) -> NodeInterchange:
    """An interchange of some nodes as one of all, of which the others are left as they are."""
    taken = jnp.zeros((n_nodes, *part.taken.shape[1:]), bool).at[those].set(part.taken)
    return NodeInterchange(taken, jnp.zeros((n_nodes, part.source.shape[1]), int).at[those].set(part.source))


def _and_the_rest(whole: NodeInterchange, outside: jax.Array, both: float, key: jax.Array) -> NodeInterchange:
    """Return the interchange with all nodes outside of the circuit from other inputs, or held, on a share."""
    which, whence, how = jax.random.split(key, 3)
    n = whole.source.shape[1]
    rows = jax.random.bernoulli(which, both, (n, 1))
    others = jax.random.randint(whence, (len(outside), n), 0, n)
    held = jax.random.bernoulli(how, HELD, (n,))
    taken = whole.taken.at[outside].set(jnp.broadcast_to(rows, whole.taken.shape[1:]))
    return NodeInterchange(taken, whole.source.at[outside].set(jnp.where(held, jnp.arange(n), others)))


def readout(node: Node, kind: str = "W") -> str:
    """The name of the weights that read a variable off a node in training; the model itself has none such."""
    return f"readout.{node}.{kind}"


def _readout_error(
    weights: Mapping[str, jax.Array], given: Mapping[str, jax.Array], node: Node, wanted: jax.Array
) -> jax.Array:
    """The mean squared error of reading what `variables` tells of a node linearly off the node."""
    own = given[node.point][:, :, node.head] if node.is_head else given[node.point]
    if not wanted.shape[-1]:  # the same on all inputs
        return jnp.zeros(())
    return jnp.mean((own @ weights[readout(node)] + weights[readout(node, "b")] - wanted) ** 2)


def random_interchange(key: jax.Array, n_nodes: int, n: int, n_pos: int) -> NodeInterchange:
    """For each input, some nodes, each at some positions, from one of two other inputs."""
    how, which, one, where, at, source, first_or_second = jax.random.split(key, 7)
    several = jax.random.bernoulli(which, 0.5, (n_nodes, n))
    single = jax.nn.one_hot(jax.random.randint(one, (n,), 0, n_nodes), n_nodes, axis=0, dtype=bool)
    nodes = jnp.where(jax.random.bernoulli(how, SINGLY, (n,)), single, several)
    everywhere = jax.random.bernoulli(where, EVERYWHERE, (n_nodes, n, 1))
    positions = everywhere | jax.random.bernoulli(at, 0.5, (n_nodes, n, n_pos))
    sources = jax.random.randint(source, (2, n), 0, n)
    chosen = jax.random.randint(first_or_second, (n_nodes, n), 0, 2)
    return NodeInterchange(nodes[:, :, None] & positions, sources[chosen, jnp.arange(n)])


def cross_entropy(logits: jax.Array, targets: jax.Array, asked: jax.Array) -> jax.Array:
    """The mean over answers that the task asks for and the program has, in nats."""
    each = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.maximum(targets, 0))
    counts = asked & (targets >= 0)
    return jnp.where(counts, each, 0).sum() / jnp.maximum(counts.sum(), 1)


def weighed(found: dict[str, jax.Array], recipe: SIITRecipe) -> jax.Array:
    """All losses in one."""
    return jnp.asarray(sum(getattr(recipe, name) * value for name, value in found.items()))
