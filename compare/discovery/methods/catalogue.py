"""All methods of circuit discovery by name, and how one's own becomes one of them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from rasplens.compare.discovery.methods.acdc import acdc
from rasplens.compare.discovery.methods.atp_star import atp_star
from rasplens.compare.discovery.methods.attribution import (
    attribution_of_nodes,
    attribution_of_nodes_ig,
    eap,
    eap_ig_activations,
    eap_ig_inputs,
)
from rasplens.compare.discovery.methods.backward_rules import gim, relp
from rasplens.compare.discovery.methods.controls import products_of_weights, random_edges
from rasplens.compare.discovery.methods.grad_path import eap_gp
from rasplens.compare.discovery.methods.patching import exact_edges, exact_nodes
from rasplens.compare.discovery.methods.pruning import edge_pruning
from rasplens.compare.discovery.methods.transformer_lens import eap_transformer_lens
from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.compare.discovery.protocol import Protocol
from rasplens.errors import RaspLensError, expect
from rasplens.model import Transformer

Method = Callable[[Problem], Scores]
"""Gives each edge of a model a score: how much it matters."""

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "exact": exact_edges,
        "acdc": acdc,
        "eap": eap,
        "eap-transformer-lens": eap_transformer_lens,
        "eap-ig-inputs": eap_ig_inputs,
        "eap-ig-activations": eap_ig_activations,
        "eap-gp": eap_gp,
        "gim": gim,
        "relp": relp,
        "atp-star": atp_star,
        "edge-pruning": edge_pruning,
        "exact-nodes": exact_nodes,
        "ap-nodes": attribution_of_nodes,
        "ap-ig-nodes": attribution_of_nodes_ig,
        "weights": products_of_weights,
        "random": random_edges,
    }
)
"""By name; `exact` is the oracle that approximations are tested against. The last two are controls."""


BY_OTHER_INPUTS = frozenset({"eap-transformer-lens"})
"""Methods that can ablate by other inputs only (`ablation="resample"`)."""


def methods_under(protocol: Protocol) -> dict[str, Method]:
    """All methods that can work by a protocol."""
    left = BY_OTHER_INPUTS if protocol.ablation != "resample" else frozenset()
    return {name: method for name, method in METHODS.items() if name not in left}


def own_method(function: Callable[[Transformer, Problem], Mapping[str, float]]) -> Method:
    """A method of one's own: a function from a model and a problem to scores by edge, such as `"embed->L0H1.q"`.

    The problem has inputs as the model reads them, perhaps behind a BOS: `tokens`, `others` and `places`. It has
    the task and the protocol as well. `rasplens.model.HookedModel` runs the model in torch, with hooks. Edges that
    the function leaves out have no score; see `Protocol.unscored`.
    """

    def scores(problem: Problem) -> Scores:
        by_edge = function(problem.transformer, problem)
        expect(by_edge, Mapping, "Your own method must return a mapping from edges to scores")
        return scores_of(problem, by_edge)

    return scores


def scores_of(problem: Problem, by_edge: Mapping[str, Any]) -> Scores:
    """Scores by name as an array; NaN for edges that are not named.

    Raises:
        RaspLensError: If an edge is none of the model's, or a score is no number.
    """
    graph = problem.graph
    graph.mask_of(by_edge)
    try:
        found = np.array([float(by_edge.get(edge, np.nan)) for edge in graph.edges])
        named = np.array([float(score) for score in by_edge.values()])
    except (TypeError, ValueError) as error:
        raise RaspLensError(f"The score of an edge must be a number: {error}.") from None
    if not np.isfinite(named).all():
        odd = next(edge for edge, score in by_edge.items() if not np.isfinite(float(score)))
        raise RaspLensError(
            f"The score of an edge must be finite; got {odd!r}: {by_edge[odd]!r}. Leave such edges out."
        )
    return found
