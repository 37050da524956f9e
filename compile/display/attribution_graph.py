"""A compiled program on one input as an attribution graph, in the JSON that circuit-tracer and Neuronpedia show.

A node is a variable at a position, and a supernode one line of the program at all of them. Links lead from what
is read to what reads it. Their weights are shares of attention, for nothing has to be attributed: the program is
known.

Source: `circuit_tracer/frontend/graph_models.py` of safety-research/circuit-tracer, schema version 1.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import networkx as nx
import numpy as np

from rasplens.compile import rasp
from rasplens.compile.anatomy import Anatomy
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.interpreter import expressions, selections
from rasplens.errors import RaspLensError
from rasplens.model.hook_points import layer_of

SCAN: Final = "rasplens"
"""In place of the name of a language model."""

KIND: Final = "cross layer transcoder"
"""The type of a node in the middle, which these tools know no other of."""

Read = tuple[str, float]
"""The node of a variable, and the weight with which it is read."""


@dataclass(frozen=True, eq=False)
class _Line:
    """A program's variable on one input.

    Attributes:
        name: Of the variable.
        layer: Where it is computed; "E" for what is embedded.
        feature: Its place in the program.
        values: At each position.
    """

    name: str
    layer: str
    feature: int
    values: Sequence[Value]

    def node_id(self, at: int) -> str:
        """The id of its node at a position."""
        return f"{self.layer}_{self.feature}_{at}"

    def node(self, at: int) -> dict[str, Any]:
        """Its node at a position."""
        kind = "embedding" if self.layer == "E" else KIND
        return _node(self.node_id(at), self.layer, self.feature, at, kind, f"{self.name} = {self.values[at]!r}")


def attribution_graph(
    compiled: Anatomy, values: Mapping[str, Sequence[Value]], tokens: Sequence[Value], position: int = -1
) -> dict[str, Any]:
    """The variables that the answer at a position is computed from, and how they are read; as JSON values.

    Args:
        compiled: The compiled program.
        values: By variable, its value at each position of the sequence.
        tokens: The sequence.
        position: Of the answer; by default the last.

    Returns:
        `metadata`, `qParams` (with the supernodes), `nodes` and `links`.

    Raises:
        RaspLensError: If the sequence has no such position.
    """
    n = len(tokens)
    if not -n <= position < n:
        raise RaspLensError(f"The sequence has {n} positions; there is none {position}.")
    at, lines = position % n, _lines(compiled, values)
    output, graph = lines[id(compiled.program)], _links(compiled, tokens, lines)
    answer, layer = output.values[at], str(compiled.transformer.config.n_layers + 1)
    logit_id = f"{layer}_{output.feature}_{at}"
    logit = _node(logit_id, layer, output.feature, at, "logit", f'Output "{answer}" (p=1.000)')
    graph.add_edge(output.node_id(at), logit_id, weight=1.0)
    graph = graph.subgraph({*nx.ancestors(graph, logit_id), logit_id})
    met = [(line, [at for at in range(n) if line.node_id(at) in graph]) for line in lines.values()]
    supernodes = [[line.name, *map(line.node_id, places)] for line, places in met if places]
    words = list(map(str, tokens))
    return {
        "metadata": {
            "slug": compiled.output.replace(" ", "-"),
            "scan": SCAN,
            "transcoder_list": [],
            "prompt_tokens": words,
            "prompt": " ".join(words),
            "node_threshold": None,
            "schema_version": 1,
        },
        "qParams": {
            "pinnedIds": [*(one for _, *ids in supernodes for one in ids), logit_id],
            "supernodes": supernodes,
            "linkType": "both",
            "clickedId": logit_id,
            "sg_pos": "",
        },
        "nodes": [
            *(line.node(at) for line, places in met for at in places),
            logit | {"token_prob": 1.0, "is_target_logit": True},
        ],
        "links": [
            {"source": source, "target": target, "weight": weight}
            for source, target, weight in graph.edges(data="weight")
        ],
    }


def _node(node_id: str, layer: str, feature: int, at: int, kind: str, words: str) -> dict[str, Any]:
    return {
        "node_id": node_id,
        "feature": feature,
        "layer": layer,
        "ctx_idx": at,
        "feature_type": kind,
        "token_prob": 0.0,
        "is_target_logit": False,
        "run_idx": 0,
        "reverse_ctx_idx": 0,
        "jsNodeId": f"{'L' if kind == 'logit' else layer}_{feature}-{at}",
        "clerp": words,
        "influence": None,
        "activation": None,
    }


def _lines(compiled: Anatomy, values: Mapping[str, Sequence[Value]]) -> dict[int, _Line]:
    """By expression, the s-ops of the program that the residual stream holds, also those in another encoding only.

    One whose name is also another's is no line of its own, unless it is the result.
    """
    sops = [expr for expr in expressions(compiled.program) if isinstance(expr, rasp.SOp)]
    names, found = Counter(expr.name for expr in sops), {}
    for i, expr in enumerate(sops):
        name = expr.name
        held = [one for one in compiled.variables if one == name or one.startswith((f"{name} (", f"{name} as "))]
        if expr is compiled.program:
            held = [compiled.output]
        if held and (names[name] == 1 or expr is compiled.program):
            variable = compiled.variables[name if name in held else held[-1]]
            found[id(expr)] = _Line(name, _layer(variable.written_at), i, values[variable.name])
    return found


def _layer(written_at: str) -> str:
    return "E" if "embed" in written_at or "resid_pre" in written_at else str(layer_of(written_at))


def _links(compiled: Anatomy, tokens: Sequence[Value], lines: Mapping[int, _Line]) -> nx.DiGraph:
    """What each variable reads at each position; of other expressions, what these read."""
    n = len(tokens)
    visible = compiled.inputs.visible[:n, :n]
    selected = {id(expr): rows for expr, rows in selections(compiled.program, tokens, visible)}
    graph, of_expression = nx.DiGraph(), dict[int, list[list[Read]]]()
    for expr in expressions(compiled.program):
        if isinstance(expr, rasp.Selector):
            continue
        reads = [
            [
                (node, weight * share)
                for child, child_at, share in _children(expr, at, selected.get(id(expr)))
                for node, weight in of_expression[id(child)][child_at]
            ]
            for at in range(n)
        ]
        if (line := lines.get(id(expr))) is not None:
            for at, found in enumerate(reads):
                graph.add_node(line.node_id(at))
                for node, weight in found:
                    known = graph.get_edge_data(node, line.node_id(at), {"weight": 0.0})["weight"]
                    graph.add_edge(node, line.node_id(at), weight=known + weight)
            reads = [[(line.node_id(at), 1.0)] for at in range(n)]
        of_expression[id(expr)] = reads
    return graph


def _children(
    expr: rasp.RASPExpr, at: int, selected: np.ndarray | None
) -> Iterator[tuple[rasp.RASPExpr, int, float]]:
    """What an s-op reads at a position: s-ops, each with its position and its share of attention."""
    if selected is None:
        yield from ((child, at, 1.0) for child in expr.children)
        return
    keys = np.flatnonzero(selected[at]).tolist()
    for child in expr.children:
        of_key = [child]
        if isinstance(child, rasp.Selector):
            selects = list(_selects(child))
            yield from ((one.queries, at, 1.0) for one in selects)
            of_key = [part for one in selects for part in _at_keys(one)]
        yield from ((one, key, 1 / len(keys)) for one in of_key for key in keys)


def _selects(selector: rasp.RASPExpr) -> Iterator[rasp.Select | rasp.SelectBest]:
    """The selects that a selector combines."""
    if isinstance(selector, rasp.Select | rasp.SelectBest):
        yield selector
        return
    for child in selector.children:
        yield from _selects(child)


def _at_keys(select: rasp.Select | rasp.SelectBest) -> Iterator[rasp.SOp]:
    """What a select reads at keys."""
    yield select.keys
    if isinstance(select, rasp.SelectBest) and isinstance(select.score, rasp.SOp):
        yield select.score
