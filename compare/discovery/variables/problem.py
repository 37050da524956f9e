"""The problem of finding a variable: what a method is given, and where the variable is and is not used.

A site is a hook point of the residual stream. The program's weights say at which ones a variable is used: from
where it is written to where it is first read, so that all that depends on it still lies ahead. Behind the last
that reads it, it is still there, and a probe may find it, but no answer depends on it any more. Where some have
read it and others have not, it is neither; nor before it is written, where the interchange of what it is computed
from may do the same as its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rasplens.compare.claims.interchange.pairs import InterchangePairs, draw_pairs
from rasplens.compare.config import CompareConfig
from rasplens.compare.discovery.cases import Case
from rasplens.compare.discovery.edge_graph import LOGITS, edge_graph, place_of
from rasplens.compare.discovery.truth import ROUNDING, directions_read, nodes_standing_for
from rasplens.compare.evidence.subspaces.representations import Place, Representation, representations
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.study import Study, study_of
from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError
from rasplens.learned.siit.circuit import Circuit
from rasplens.model.hook_points import layer_of

CONFIG = CompareConfig(n_inputs=500, n_fitting=1_000, interchange_pairs=300)
"""The default config: how much is looked at."""

STATES = "pre", "mid", "post"
"""Hook points of the residual stream in a layer: before the attention, between it and the MLP, after both."""

Use = Literal["used", "unused"]


@dataclass(frozen=True, eq=False)
class VariableProblem:
    """One variable of a program, and the sites at which a model may hold it.

    Attributes:
        study: The compiled model and the one that is looked at, on inputs to score on and others.
        chosen: Pairs of these, between which the variable is interchanged.
        scored: Pairs to score on.
        sites: The hook points of the residual stream at which it is known whether the variable is used.
        held: Where one linear map from all variables to the stream puts each.
        seed: Of the methods.
    """

    study: Study
    chosen: InterchangePairs
    scored: InterchangePairs
    sites: Mapping[str, Use]
    held: Mapping[Place, Representation]
    seed: int

    @property
    def variable(self) -> str:
        """Its name."""
        return self.chosen.variable

    @property
    def fitting(self) -> Pairing:
        """The models on inputs that methods may use."""
        return self.study.fitting


def variable_problems(case: Case, config: CompareConfig = CONFIG, seed: int = 0) -> list[VariableProblem]:
    """One problem for each variable that can be interchanged, is used somewhere, and unused somewhere else."""
    study = study_of(case.compiled, case.transformer, case.task, config, seed, case.vocabulary)
    drawn = [
        (sites_of(study, chosen.variable, case.circuit), chosen, scored)
        for chosen, scored in draw_pairs(study, study.variables, seed)
    ]
    told = [part for part in drawn if {"used", "unused"} <= set(part[0].values())]
    held = representations(study) if told else {}
    return [VariableProblem(study, chosen, scored, sites, held, seed) for sites, chosen, scored in told]


def sites_of(study: Study, variable: str, circuit: Circuit | None = None) -> dict[str, Use]:
    """At which hook points of the learned model's stream a variable is used, and at which it no longer is.

    Args:
        study: The compiled model and the learned one.
        variable: Its name.
        circuit: Which nodes of the learned model stand for which parts of the compiled one; by default it has the
            same heads and MLPs.

    Raises:
        RaspLensError: If nothing reads it.
    """
    compiled, learned = study.compiled, study.learned
    written = stage_written(compiled, variable, circuit)
    read = stages_read(compiled, variable, learned.n_layers, circuit)
    if not read:
        raise RaspLensError(f"Nothing reads {variable!r} in the compiled model.")
    found: dict[str, Use] = {}
    for point in learned.residual_points:
        if written <= stage(point) <= min(read):
            found[point] = "used"
        elif stage(point) > max(read):
            found[point] = "unused"
    return found


def stage_written(compiled: CompiledModel, variable: str, circuit: Circuit | None = None) -> int:
    """The stage of the stream from which on a model has a variable: see `stage`."""
    if circuit is not None:
        for node, part in circuit.items():
            if variable in part.variables:
                return 2 * node.layer + (1 if node.is_head else 2)
    return stage(compiled.variables[variable].written_at)


def stages_read(
    compiled: CompiledModel, variable: str, n_layers: int, circuit: Circuit | None = None
) -> list[int]:
    """The stages of a model's stream, of so many layers, at which something reads a variable: see `stage`."""
    model, projector = compiled.transformer, compiled.variables[variable].projector
    graph, standing_for = edge_graph(model.config), nodes_standing_for(circuit or {})
    found: set[int] = set()
    for receiver in graph.receivers:
        if np.abs(projector @ directions_read(model, receiver)).max(initial=0) <= ROUNDING:
            continue
        if receiver == LOGITS:
            found.add(2 * n_layers)
            continue
        own = graph.node_of(receiver)
        for layer, head in map(place_of, standing_for.get(own, [own])):
            found.add(2 * layer + (head is None))
    return sorted(found)


def stage(point: str) -> int:
    """The number of a hook point of the residual stream, in forward order; a layer's end is the next's start."""
    return 2 * layer_of(point) + STATES.index(point.rpartition("_")[2])
