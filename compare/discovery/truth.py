"""Which edges are in a circuit, from the program: nothing is patched, so that no method has the labels to itself.

The weights of a compiled model are the program: what a part writes and what another reads are directions that the
compiler chose, and where the two have none in common their product is exactly zero. So an edge is in the
circuit if that product is not zero, and both its ends are on a way from the inputs to the answers.

That is the truth for zero ablation. Ablation by the mean or by other inputs cannot tell what is the same on all
inputs, such as positions and lengths. For those an edge is in the circuit if what passes along it differs between
inputs somewhere.
"""

from collections.abc import Mapping

import networkx as nx
import numpy as np
from jaxtyping import Float

from rasplens.compare.discovery.edge_graph import EMBED, LOGITS, POS_EMBED, edge_graph, place_of
from rasplens.compile import CompiledModel, PlantedModel
from rasplens.learned.siit.circuit import Circuit, Node
from rasplens.model import Transformer
from rasplens.model.hook_points import act_name, param_name
from rasplens.tasks import Task

N_INPUTS = 500
"""Number of inputs on which it is tested whether the signal along an edge differs."""

ROUNDING = 1e-4
"""Tolerance on the products of a compiled model's directions, whose entries are about one."""


def program_edges(compiled: CompiledModel, task: Task | None = None) -> frozenset[str]:
    """The edges of a compiled model along which its program passes anything.

    Args:
        compiled: The model.
        task: If given, only edges along which something passes that differs between the task's inputs.
    """
    model = compiled.transformer
    graph = edge_graph(model.config)
    if task is None:
        written = {name: directions_written(model, name) for name in graph.senders}
    else:
        written = _differences(compiled, task)
    read = {name: directions_read(model, name) for name in graph.receivers}
    found = [
        (graph.senders[s], graph.receivers[r])
        for r, s in graph.pairs
        if np.abs(written[graph.senders[s]] @ read[graph.receivers[r]]).max(initial=0) > ROUNDING
    ]
    nodes = nx.DiGraph((sender, graph.node_of(receiver)) for sender, receiver in found)
    nodes.add_nodes_from((EMBED, LOGITS))
    starts = [start for start in (EMBED, POS_EMBED) if start in nodes]
    reached = set(starts).union(*(nx.descendants(nodes, start) for start in starts))
    on_a_way = reached & (nx.ancestors(nodes, LOGITS) | {LOGITS})
    return frozenset(
        f"{sender}->{receiver}"
        for sender, receiver in found
        if sender in on_a_way and graph.node_of(receiver) in on_a_way
    )


def _differences(compiled: CompiledModel, task: Task) -> dict[str, Float[np.ndarray, "row d_model"]]:
    """Return what each sender writes on inputs, less what it writes on the first: a row for each position."""
    model = compiled.transformer.astype(np.float64)
    tokens = compiled.encode(task.sequences(task.held_out[:N_INPUTS]))
    _, cache = model.run_with_cache(tokens)
    found = {}
    for name in edge_graph(model.config).senders:
        if name in (EMBED, POS_EMBED):
            value = cache[f"hook_{name}"]
        else:
            layer, head = place_of(name)
            written = cache[act_name("mlp_out" if head is None else "result", layer)]
            value = written if head is None else written[:, :, head]
        found[name] = (value - value[:1]).reshape(-1, value.shape[-1])
    return found


def circuit_edges(compiled: CompiledModel, circuit: Circuit, task: Task | None = None) -> frozenset[str]:
    """Return the program's edges in a model whose nodes stand for compiled parts and compute their variables."""
    places = nodes_standing_for(circuit)
    return frozenset(renamed for edge in program_edges(compiled, task) for renamed in _renamed(edge, places))


def planted_edges(planted: PlantedModel, circuit: Circuit, task: Task | None = None) -> frozenset[str]:
    """The program's edges in a model that it is planted in; see `program_edges`.

    All that reads the program's directions depends on the constant that its tokens write, by the norm. It is the
    same on all of the program's inputs. Where only queries or keys lose it, they attend more sharply, which no
    answer tells. Positions come through the neurons that pass them on.

    Args:
        planted: The model.
        circuit: Which of its nodes stand for which parts of the compiled one.
        task: If given, only edges along which something passes that differs between the task's inputs.
    """
    passing = None if planted.passes_positions is None else str(Node(planted.passes_positions))
    found = circuit_edges(planted.compiled, circuit, task)
    if passing is not None:
        found = renamed_edges(found, {POS_EMBED: passing})
    if task is not None:
        return found
    readers = {edge.partition("->")[2] for edge in found} | ({passing} - {None})
    constant = {f"{EMBED}->{reader}" for reader in readers}
    return found | constant | ({f"{POS_EMBED}->{passing}"} if passing is not None else set())


def nodes_standing_for(circuit: Circuit) -> dict[str, list[str]]:
    """By each head and MLP of the compiled model, the nodes that stand for it, by the names that edges have."""
    places: dict[str, list[str]] = {}
    for node, part in circuit.items():
        for head in part.heads or (-1,):
            places.setdefault(str(Node(part.layer, head)), []).append(str(node))
    return places


def renamed_edges(edges: frozenset[str], names: Mapping[str, str]) -> frozenset[str]:
    """Edges of a model whose nodes have other names, such as heads in another order."""
    places = {node: [new] for node, new in names.items()}
    return frozenset(renamed for edge in edges for renamed in _renamed(edge, places))


def _renamed(edge: str, places: Mapping[str, list[str]]) -> list[str]:
    """An edge between the nodes that stand for its ends; those without an entry keep their names."""
    sender, _, receiver = edge.partition("->")
    node, dot, letter = receiver.partition(".")
    return [f"{s}->{r}{dot}{letter}" for s in places.get(sender, [sender]) for r in places.get(node, [node])]


def directions_written(model: Transformer, sender: str) -> Float[np.ndarray, "row d_model"]:
    """The directions that a part writes."""
    weights = model.weights
    if sender == EMBED:
        return weights["embed.W_E"]
    if sender == POS_EMBED:
        return weights["pos_embed.W_pos"]
    layer, head = place_of(sender)
    return weights[param_name("W_out", layer)] if head is None else weights[param_name("W_O", layer)][head]


def directions_read(model: Transformer, receiver: str) -> Float[np.ndarray, "d_model column"]:
    """The directions that a part reads."""
    if receiver == LOGITS:
        return model.weights["unembed.W_U"]
    node, _, letter = receiver.partition(".")
    layer, head = place_of(node)
    if head is None:
        return model.weights[param_name("W_in", layer)]
    return model.weights[param_name(f"W_{letter.upper()}", layer)][head]
