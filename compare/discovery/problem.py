"""The problem that a method of circuit discovery is given: a model, pairs of inputs, and what counts as damage."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.discovery.edge_graph import EdgeGraph, edge_graph
from rasplens.compare.discovery.patched_run import Run, in_float64, patched_of, patched_run
from rasplens.compare.discovery.protocol import Protocol
from rasplens.compare.subject.vocabulary import GivenVocabulary, Vocabulary, task_vocabulary
from rasplens.errors import RaspLensError
from rasplens.model import HasTransformer, Transformer
from rasplens.model.random_streams import rng
from rasplens.tasks import Task
from rasplens.tasks.task import Ids

NEED_LOGITS = "loss", "logit_difference"
"""Metrics that need a logit for each answer."""

NUMBERS = 'The metric {!r} needs a logit for each answer; this model answers with numbers. Use metric="l2".'

AT_ONCE = 16
"""Sets of patched edges that are run in one batch."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model on pairs of inputs.

    Attributes:
        transformer: The model.
        task: What it is asked.
        protocol: How.
        tokens: The inputs, as the model takes them.
        others: The other inputs.
        places: The model's positions at which answers are read.
        asked: Which answers the task asks for; the others do not count.
        right: The logit of the right answer, -1 where the model has none for it, such as a compiled model's None;
            None if answers are numbers.
        wrong: The logit of the other input's answer; of the right one, where there is none.
        run: The forward pass with edges open; see `patched_run`.
        read: From tokens, `AT_ONCE` sets of patched edges and what these carry, the logits of the answers.
        clean: Without any patch, the logits and what each sender writes.
        instead: What an ablated edge carries: `[sender, pair, ctx, d_model]`.
    """

    transformer: Transformer
    task: Task
    protocol: Protocol
    tokens: Int[np.ndarray, "pair ctx"]
    others: Int[np.ndarray, "pair ctx"]
    places: tuple[int, ...]
    asked: Bool[np.ndarray, "pair answer"]
    right: Int[np.ndarray, "pair answer"] | None
    wrong: Int[np.ndarray, "pair answer"] | None
    run: Run
    read: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    clean: tuple[jax.Array, jax.Array]
    instead: jax.Array

    @cached_property
    def graph(self) -> EdgeGraph:
        """The edges of the model."""
        return edge_graph(self.transformer.config)

    @in_float64
    def damage(self, patched: jax.Array | None, added: jax.Array | None = None) -> jax.Array:
        """The mean damage over pairs, with shares of edges patched: `[receiver, sender]`, or none."""
        logits, _ = self.run(jnp.asarray(self.tokens), patched, self.instead, added)
        return self.damages_of(logits[:, jnp.asarray(self.places)]).mean()

    @in_float64
    def damages(self, patched: Float[np.ndarray, "patch edge"]) -> Float[np.ndarray, "patch pair"]:
        """The damage to each pair, with several sets of edges patched."""
        return self._by_parts(patched, self._damages_of_sets)

    @in_float64
    def answers(self, patched: Float[np.ndarray, "patch edge"]) -> Float[np.ndarray, "patch pair answer logit"]:
        """The logits of the answers, with several sets of edges patched."""
        return self._by_parts(patched, lambda logits: logits)

    def _by_parts(
        self, patched: Float[np.ndarray, "patch edge"], measured: Callable[[jax.Array], jax.Array]
    ) -> np.ndarray:
        """Measure the answers' logits with each set of edges patched, `AT_ONCE` sets at a time."""
        whole = -len(patched) % AT_ONCE
        padded = np.concatenate([patched, np.zeros((whole, patched.shape[1]), dtype=patched.dtype)])
        tokens = jnp.asarray(self.tokens)
        parts = [
            np.asarray(measured(self.read(tokens, self.matrix(padded[first : first + AT_ONCE]), self.instead)))
            for first in range(0, len(padded), AT_ONCE)
        ]
        return np.concatenate(parts)[: len(patched)]

    @cached_property
    def _damages_of_sets(self) -> Callable[[jax.Array], jax.Array]:
        """`damages_of`, of several sets of patched edges."""
        return jax.jit(jax.vmap(self.damages_of))

    @in_float64
    def damages_of(self, own: jax.Array) -> jax.Array:
        """Of each pair the damage over what counts, from logits `[pair, answer, logit]`; 0 if nothing does."""
        counts = jnp.asarray(self.counts)
        summed = jnp.where(counts, self._of_answers(own), 0).sum(axis=-1)
        return summed if self.protocol.answers == "sum" else summed / jnp.maximum(counts.sum(axis=-1), 1)

    @property
    def counts(self) -> Bool[np.ndarray, "pair answer"]:
        """Which answers count: those that are asked, and have a logit if the metric needs one."""
        if self.protocol.metric not in NEED_LOGITS or self.right is None:
            return self.asked
        return self.asked & (self.right >= 0)

    def _of_answers(self, own: jax.Array) -> jax.Array:
        """The damage to each answer: `[pair, answer]`."""
        clean = self.clean[0][:, jnp.asarray(self.places)]
        if self.protocol.metric == "l2":
            return ((own - clean) ** 2).sum(axis=-1)
        if self.protocol.metric == "kl":
            log_own, log_clean = (jax.nn.log_softmax(each, axis=-1) for each in (own, clean))
            return (jnp.exp(log_clean) * (log_clean - log_own)).sum(axis=-1)
        if self.right is None or self.wrong is None:
            raise RaspLensError(NUMBERS.format(self.protocol.metric))
        right = jnp.take_along_axis(own, jnp.asarray(np.maximum(self.right, 0))[..., None], axis=-1)[..., 0]
        if self.protocol.metric == "loss":
            return jax.nn.logsumexp(own, axis=-1) - right
        return jnp.take_along_axis(own, jnp.asarray(np.maximum(self.wrong, 0))[..., None], axis=-1)[..., 0] - right

    def of_pair(self, pair: int) -> "Problem":
        """Return the problem of a single pair."""
        some = slice(pair, pair + 1)
        return replace(
            self,
            tokens=self.tokens[some],
            others=self.others[some],
            asked=self.asked[some],
            right=None if self.right is None else self.right[some],
            wrong=None if self.wrong is None else self.wrong[some],
            clean=(self.clean[0][some], self.clean[1][:, some]),
            instead=self.instead[:, some],
        )

    def matrix(self, patched: np.ndarray) -> jax.Array:
        """From a value for each edge, the matrix that `damage` takes."""
        return jnp.asarray(patched_of(self.graph, np.asarray(patched, dtype=np.float32)))


@in_float64
def discovery_problem(
    model: HasTransformer, task: Task, protocol: Protocol = Protocol(), vocabulary: GivenVocabulary | None = None
) -> Problem:
    """A model on pairs of a task's held-out inputs.

    Args:
        model: The model.
        task: What it is asked.
        protocol: How damage is measured. For a model that answers with numbers, `"kl"` becomes `"l2"`.
        vocabulary: The model's, if it is not the task's own.

    Raises:
        RaspLensError: If the model has no layers or lacks the logits that the metric needs, or no answer counts.
    """
    transformer = model.transformer
    if transformer.config.n_layers == 0:
        raise RaspLensError("A model without layers has no circuit to discover.")
    own = task_vocabulary(task) if vocabulary is None else vocabulary
    own = own if isinstance(own, Vocabulary) else own(task)
    if own.columns is None and protocol.metric == "kl":
        protocol = replace(protocol, metric="l2")
    if own.columns is None and protocol.metric in NEED_LOGITS:
        raise RaspLensError(NUMBERS.format(protocol.metric))
    random = rng(protocol.seed, "circuit discovery")
    pool = _with_answers(task, protocol, own)
    ids = pool[random.integers(0, len(pool), protocol.n_pairs)]
    others = task.held_out[random.integers(0, len(task.held_out), protocol.n_pairs)]
    if protocol.corruption == "one_token":
        others = _with_one_token_changed(ids, others, random)
    asked, right, wrong = task.is_asked(ids), _columns(task, own, ids), _columns(task, own, others)
    if right is not None and wrong is not None:
        wrong = np.where(wrong < 0, right, wrong)
    places = tuple(own.positions[position] for position in task.loss_positions)
    run, tokens = patched_run(transformer), own.tokens(ids)
    clean, other = (jax.jit(run)(jnp.asarray(each)) for each in (tokens, own.tokens(others)))
    instead, read = _instead(protocol.ablation, clean[1], other[1]), _reader(run, places)
    return Problem(
        transformer, task, protocol, tokens, own.tokens(others), places, asked, right, wrong, run, read, clean,
        instead,
    )  # fmt: skip


def _reader(run: Run, places: tuple[int, ...]) -> Callable[[jax.Array, jax.Array, jax.Array], jax.Array]:
    """From tokens, sets of patched edges and what these carry, the logits of the answers; compiled once."""

    def read(tokens: jax.Array, patched: jax.Array, instead: jax.Array) -> jax.Array:
        return run(tokens, patched, instead)[0][:, np.array(places)]

    return jax.jit(jax.vmap(read, in_axes=(None, 0, None)))


def _with_answers(task: Task, protocol: Protocol, own: Vocabulary) -> Ids:
    """The held-out inputs of which some answer counts.

    Raises:
        RaspLensError: If there are none.
    """
    counts = task.is_asked(task.held_out)
    if protocol.metric in NEED_LOGITS and (right := _columns(task, own, task.held_out)) is not None:
        counts = counts & (right >= 0)
    if not (found := task.held_out[counts.any(axis=1)]).size:
        raise RaspLensError(
            f"No held-out input of {task.name!r} asks for an answer that the model has a logit for."
        )
    return found


def _columns(task: Task, own: Vocabulary, ids: Ids) -> Int[np.ndarray, "pair answer"] | None:
    """The logit of each right answer, -1 where there is none; None for a model that answers with numbers."""
    codes = task.target(ids)
    return None if own.columns is None else np.where(codes >= 0, own.columns[codes], -1)


def _instead(ablation: str, clean: jax.Array, other: jax.Array) -> jax.Array:
    """Return what ablated edges carry, from what each sender writes on the inputs and on the others."""
    if ablation == "zero":
        return jnp.zeros_like(clean)
    if ablation == "mean":
        return jnp.broadcast_to(clean.mean(axis=1, keepdims=True), clean.shape)
    return other


def _with_one_token_changed(
    ids: Int[np.ndarray, "pair pos"], others: Int[np.ndarray, "pair pos"], random: np.random.Generator
) -> Int[np.ndarray, "pair pos"]:
    """Inputs in which one position is as on the other input, where the two differ."""
    changed = ids.copy()
    for row, (own, other) in enumerate(zip(ids, others, strict=True)):
        if len(differing := np.flatnonzero(own != other)):
            at = random.choice(differing)
            changed[row, at] = other[at]
    return changed


Scores = Float[np.ndarray, " edge"]
"""How much each edge of a model matters; NaN for an edge without a score."""
