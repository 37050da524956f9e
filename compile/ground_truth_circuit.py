"""The ground-truth circuit of a compiled model: which connections its answers depend on.

The convention is *zero ablation*. At the grain of heads, a connection from one part to another is cut by
taking what the one writes out of what the other reads, and out of nothing else. At the grain of attention
edges, a key is cut from a query by setting its attention to zero, in all heads of the layer, and
renormalising the rest of the row. Either is in the circuit if on some input it changes some decoded answer.
So every connection inside matters for some input, and none outside matters for any that was tried: all of
them where they can be enumerated. Cutting several outside ones at once may matter: each may stand in for
another.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import array_api_compat.numpy as xnp
import networkx as nx
import numpy as np
from jaxtyping import Float, Int

from rasplens.compile.anatomy import Anatomy
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.variable import nearest
from rasplens.errors import RaspLensError
from rasplens.model.forward import forward, masked_softmax
from rasplens.model.hook_points import param_name
from rasplens.model.interventions import Edges, array_hook

TOKENS, POSITIONS, LOGITS = "tokens", "positions", "logits"
"""The parts of a model that are neither heads nor neurons: its two embeddings and its unembedding."""

Granularity = Literal["head", "edge"]
"""Connections between heads and neurons, or attention edges between positions."""

Residual = Float[np.ndarray, "batch pos d_model"]


@dataclass(frozen=True)
class CircuitPart:
    """A part of the model that reads from or writes to the residual stream.

    Attributes:
        name: `"L0H1"` for a head, `"L0 hist"` for the neurons of a variable, or an embedding or the logits.
        layer: Its layer; -1 for embeddings.
        head: Of a head, its number in the layer.
        neurons: Of neurons, their numbers in the layer.
    """

    name: str
    layer: int = -1
    head: int | None = None
    neurons: tuple[int, ...] | None = None


Cut = tuple[str, str]
"""The names of the part that writes and of the one that no longer reads it."""


def circuit(
    compiled: Anatomy,
    granularity: Granularity = "head",
    positions: Sequence[int] | None = None,
    limits: CompileLimits = DEFAULT_LIMITS,
) -> nx.DiGraph:
    """The connections that the model's answers depend on.

    Args:
        compiled: The model.
        granularity: `"head"`: nodes are heads, neurons by variable, embeddings and logits; an edge says
            that one reads what the other writes. `"edge"`: nodes are (layer, position) of the residual
            stream, and an edge from (l, key) to (l + 1, query) is attention in layer l.
        positions: Where answers count; by default everywhere.
        limits: On how many inputs to try connections.

    Returns:
        A graph whose `graph` attributes say which ablation it is the truth for, on how many inputs, and
        whether those are all.

    Raises:
        RaspLensError: If the granularity is unknown or a position is outside the sequence.
    """
    if granularity not in get_args(Granularity):
        raise RaspLensError(f'granularity must be "head" or "edge"; got {granularity!r}.')
    n = compiled.inputs.max_len
    counted = list(range(n)) if positions is None else list(positions)
    if outside := [position for position in counted if not 0 <= position < n]:
        raise RaspLensError(f"Positions {outside} lie outside the {n} positions of the longest sequence.")
    batches = list(_tried(compiled, limits.circuit_inputs))
    graph = nx.DiGraph(
        ablation="zero, attention renormalised" if granularity == "edge" else "zero",
        inputs=sum(len(ids) for ids in batches),
        exhaustive=compiled.inputs.size <= limits.circuit_inputs,
    )
    candidates: Iterator[Cut | AttentionEdge] = _attention_edges(compiled)
    if granularity == "head":
        graph.add_nodes_from(part.name for part in parts(compiled))
        candidates = _connections(compiled)
    for candidate in candidates:
        if any(_matters(compiled, ids, candidate, counted) for ids in batches):
            graph.add_edge(*_ends(candidate))
    return graph


@dataclass(frozen=True)
class AttentionEdge:
    """Attention in a layer from a key to a query, as positions of the sequence."""

    layer: int
    query: int
    key: int


def parts(compiled: Anatomy) -> list[CircuitPart]:
    """The parts of a model, in the order in which they read and write."""
    config = compiled.transformer.config
    found = [CircuitPart(TOKENS)] + ([CircuitPart(POSITIONS)] if config.positions == "learned" else [])
    for layer in range(config.n_layers):
        found += [CircuitPart(f"L{layer}H{head}", layer, head=head) for at, head in compiled.heads if at == layer]
        neurons: dict[str, tuple[int, ...]] = {}
        for (at, start, end), name in compiled.neurons.items():
            if at == layer:
                neurons[name] = (*neurons.get(name, ()), *range(start, end))
        found += [CircuitPart(f"L{layer} {name}", layer, neurons=own) for name, own in neurons.items()]
    return [*found, CircuitPart(LOGITS, config.n_layers)]


def run_parts(compiled: Anatomy, ids: Int[np.ndarray, "batch pos"], cut: Cut | None = None) -> np.ndarray:
    """The logits at the sequence's positions, part by part, with one connection cut."""
    model, tokens = compiled.transformer, compiled.with_bos(ids)
    nothing = np.zeros((*tokens.shape, model.config.d_model), dtype=model.dtype)
    written: dict[str, Residual] = {}
    for _, together in itertools.groupby(parts(compiled), key=_stage):
        found = {}
        for part in together:
            read = sum((value for name, value in written.items() if (name, part.name) != cut), nothing)
            if part.name == LOGITS:
                return (read @ model.W_U)[:, compiled.offset :]
            found[part.name] = _write(compiled, part, read, tokens)
        written |= found
    raise AssertionError("the logits are the last part")


def _stage(part: CircuitPart) -> tuple[int, bool]:
    """Parts of one stage read the same and do not read each other: the heads of a layer, then its neurons."""
    return part.layer, part.head is None


def _write(compiled: Anatomy, part: CircuitPart, read: Residual, tokens: np.ndarray) -> Residual:
    """The vector that one part adds to the residual stream."""
    weights, n = compiled.transformer.weights, tokens.shape[1]
    if part.name == TOKENS:
        return weights["embed.W_E"][tokens]
    if part.name == POSITIONS:
        return np.broadcast_to(weights["pos_embed.W_pos"][:n], read.shape)
    if part.neurons is not None:
        own = list(part.neurons)
        W_in, W_out = (weights[param_name(f"W_{side}", part.layer)] for side in ("in", "out"))
        return np.maximum(read @ W_in[:, own], 0) @ W_out[own]
    query, key, value = (read @ weights[param_name(f"W_{letter}", part.layer)][part.head] for letter in "QKV")
    scores = query @ key.transpose(0, 2, 1) / compiled.transformer.config.attn_scale
    scores = np.where(compiled.transformer.mask[part.layer, :n, :n], scores, -np.inf)
    return masked_softmax(scores) @ value @ weights[param_name("W_O", part.layer)][part.head]


def _run_without(compiled: Anatomy, ids: np.ndarray, edge: AttentionEdge) -> np.ndarray:
    """Return the logits with an attention edge taken away; the rest of its row keeps its proportions."""
    model, tokens = compiled.transformer, compiled.with_bos(ids)
    where = np.zeros((1, 1, tokens.shape[1], tokens.shape[1]), dtype=bool)
    where[..., compiled.offset + edge.query, compiled.offset + edge.key] = True
    with array_hook([Edges(edge.layer, "attention", None, where)], xnp) as hook:
        return forward(model.weights, model.mask, model.config, tokens, hook)[:, compiled.offset :]


def _matters(compiled: Anatomy, ids: np.ndarray, candidate: Cut | AttentionEdge, counted: Sequence[int]) -> bool:
    """Whether cutting a connection changes an answer on some of the inputs."""
    length = ids.shape[1]
    if isinstance(candidate, AttentionEdge):
        if max(candidate.query, candidate.key) >= length:
            return False
        logits = _run_without(compiled, ids, candidate)
    else:
        logits = run_parts(compiled, ids, candidate)
    at = [position for position in counted if position < length]
    output = compiled.variables[compiled.output]
    before, _ = nearest(output, compiled.transformer(compiled.with_bos(ids))[:, compiled.offset :][:, at])
    after, errors = nearest(output, logits[:, at])
    return bool(((after != before) | (errors > compiled.tolerance(output))).any())


def _connections(compiled: Anatomy) -> Iterator[Cut]:
    """Every pair of parts of which the second comes after the first."""
    for writer, reader in itertools.combinations(parts(compiled), 2):
        if _stage(writer) < _stage(reader) and reader.layer >= 0:
            yield writer.name, reader.name


def _attention_edges(compiled: Anatomy) -> Iterator[AttentionEdge]:
    mask = compiled.transformer.mask[:, compiled.offset :, compiled.offset :]
    active = {layer for layer, _ in compiled.heads}
    for layer, query, key in np.argwhere(mask).tolist():
        if layer in active:
            yield AttentionEdge(layer, query, key)


def _ends(candidate: Cut | AttentionEdge) -> tuple[object, object]:
    if isinstance(candidate, AttentionEdge):
        return (candidate.layer, candidate.key), (candidate.layer + 1, candidate.query)
    return candidate


def _tried(compiled: Anatomy, most: int) -> Iterator[np.ndarray]:
    """All inputs where there are few enough, else a sample."""
    space = compiled.inputs
    yield from space.all_ids() if space.size <= most else space.sampled_ids(most, seed=0)
