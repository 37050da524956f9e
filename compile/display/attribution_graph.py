"""A compiled program on one input as an attribution graph, in the JSON that circuit-tracer and Neuronpedia show.

A node is an s-op at a position, and a supernode one line of the program at all of them. Links lead from what is
read to what reads it. Nothing has to be attributed: the program is known. A weight is the largest share with which
something is read: 1 at the own position, and at keys the share of attention. Of keys, those are linked that are
selected, though others are looked at; of a choice, what is chosen.

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
from rasplens.compile.rasp.interpreter import every_value, expressions
from rasplens.errors import RaspLensError
from rasplens.model.hook_points import layer_of

SCAN: Final = "rasplens"
"""In place of the name of a language model."""

KIND: Final = "cross layer transcoder"
"""These tools know no other type of node between the input and the logits."""

Read = tuple[str, float]
"""A node, and the weight with which it is read."""

Values = Mapping[int, list[Any]]
"""By expression of a program, its value at each position; of a selector its rows."""


@dataclass(frozen=True, eq=False)
class _Line:
    """An s-op of a program on one input.

    Attributes:
        name: Its name.
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


def attribution_graph(compiled: Anatomy, tokens: Sequence[Value], position: int = -1) -> dict[str, Any]:
    """The s-ops that the answer at a position is computed from, and how they are read; as JSON values.

    Args:
        compiled: The compiled program.
        tokens: The sequence.
        position: Of the answer; by default the last.

    Returns:
        `metadata`, `qParams` (with the supernodes), `nodes` and `links`.

    Raises:
        RaspLensError: If the sequence is not one that it takes, or has no such position.
        UndefinedValue: If the program has no value on it.
    """
    compiled.encode([tokens])  # raises for what it does not take
    n = len(tokens)
    if not -n <= position < n:
        raise RaspLensError(f"The sequence has {n} positions; there is none {position}.")
    at, visible = position % n, compiled.inputs.visible[:n, :n]
    values = {id(expr): found for expr, found in every_value(compiled.program, tokens, visible)}
    lines = _lines(compiled, values)
    output, graph = lines[id(compiled.program)], _links(compiled.program, values, lines)
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


def _lines(compiled: Anatomy, values: Values) -> dict[int, _Line]:
    """By expression, the s-ops of the program that the residual stream holds, in whatever encoding.

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
            layer = _layer(compiled.variables[name if name in held else held[-1]].written_at)
            found[id(expr)] = _Line(name, layer, i, values[id(expr)])
    return found


def _layer(written_at: str) -> str:
    return "E" if "embed" in written_at or "resid_pre" in written_at else str(layer_of(written_at))


def _links(program: rasp.SOp, values: Values, lines: Mapping[int, _Line]) -> nx.DiGraph:
    """What each line reads at each position; of other expressions, what these read."""
    graph, of_expression = nx.DiGraph(), dict[int, list[list[Read]]]()
    for expr in expressions(program):
        if isinstance(expr, rasp.Selector):
            continue
        reads = [
            [
                (node, weight * share)
                for child, child_at, share in _children(expr, at, values)
                for node, weight in of_expression[id(child)][child_at]
            ]
            for at in range(len(values[id(expr)]))
        ]
        if (line := lines.get(id(expr))) is not None:
            for at, found in enumerate(reads):
                graph.add_node(line.node_id(at))
                for node, weight in sorted(found, key=lambda read: read[1]):  # the largest comes last, and stays
                    graph.add_edge(node, line.node_id(at), weight=weight)
            reads = [[(line.node_id(at), 1.0)] for at in range(len(reads))]
        of_expression[id(expr)] = reads
    return graph


def _children(expr: rasp.RASPExpr, at: int, values: Values) -> Iterator[tuple[rasp.RASPExpr, int, float]]:
    """What an s-op reads at a position: s-ops, each with its position and its share."""
    if isinstance(expr, rasp.Where):
        yield expr.condition, at, 1.0
        yield expr.then if values[id(expr.condition)][at] else expr.otherwise, at, 1.0
        return
    if not isinstance(expr, rasp.Aggregate | rasp.SelectorWidth):
        yield from ((child, at, 1.0) for child in expr.children)
        return
    keys, selects = np.flatnonzero(values[id(expr.selector)][at]).tolist(), list(_selects(expr.selector))
    yield from ((one.queries, at, 1.0) for one in selects)
    at_keys = [part for one in selects for part in _at_keys(one)]
    at_keys += [expr.sop] if isinstance(expr, rasp.Aggregate) else []
    yield from ((one, key, 1 / len(keys)) for one in at_keys for key in keys)


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
