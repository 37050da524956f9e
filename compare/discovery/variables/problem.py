"""What a method that looks for a variable is given, and where the variable is and is not used.

A site is a hook point of the residual stream. The program's weights say at which ones a variable is used: from
where it is written to where it is first read, so that all that depends on it still lies ahead. Behind the last
that reads it, it is still there, and a probe may find it, but no answer depends on it any more. Where some have
read it and others have not, it is neither; nor before it is written, where the interchange of what it is computed
from may do the same as its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rasplens.compare.config import CompareConfig
from rasplens.compare.discovery.cases import Case
from rasplens.compare.discovery.edge_graph import LOGITS, edge_graph, place_of
from rasplens.compare.discovery.truth import directions_read
from rasplens.compare.evidence.interchange.pairs import InterchangePairs, draw_pairs
from rasplens.compare.evidence.subspaces.representations import Place, Representation, representations
from rasplens.compare.models.pairing import Pairing, pair
from rasplens.compare.models.studied_model import layer_of
from rasplens.compile import CompiledModel
from rasplens.errors import RaspLensError

CONFIG = CompareConfig(n_inputs=500, n_fitting=1_000, interchange_pairs=300)
"""How much is looked at, unless told otherwise."""

STATES = "pre", "mid", "post"
"""Of the residual stream in a layer: before its attention, between that and its MLP, and behind both."""

Use = Literal["used", "unused"]


@dataclass(frozen=True, eq=False)
class VariableProblem:
    """One variable of a program, and the sites at which a model may hold it.

    Attributes:
        pairing: The compiled model and the one that is looked at, on inputs to score on; `pairing.fitting` has
            them on those that methods may use.
        chosen: Pairs of these, between which the variable is interchanged.
        scored: Pairs to score on.
        sites: The hook points of the residual stream at which it is known whether the variable is used.
        held: Where one linear map from all variables to the stream puts each.
        seed: Of the methods.
    """

    pairing: Pairing
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
        assert self.pairing.fitting is not None
        return self.pairing.fitting


def variable_problems(case: Case, config: CompareConfig = CONFIG, seed: int = 0) -> list[VariableProblem]:
    """One problem for each variable that can be interchanged, is used somewhere, and unused somewhere else."""
    pairing = pair(case.compiled, case.transformer, case.task, config, seed, case.vocabulary)
    drawn = [(sites_of(pairing, chosen.variable), chosen, scored) for chosen, scored in draw_pairs(pairing, seed)]
    told = [part for part in drawn if {"used", "unused"} <= set(part[0].values())]
    held = representations(pairing) if told else {}
    return [VariableProblem(pairing, chosen, scored, sites, held, seed) for sites, chosen, scored in told]


def sites_of(pairing: Pairing, variable: str) -> dict[str, Use]:
    """At which hook points of the learned model's stream a variable is used, and at which it no longer is.

    Raises:
        RaspLensError: If nothing reads it.
    """
    compiled = pairing.compiled
    written, read = stage(compiled.variables[variable].written_at), stages_read(compiled, variable)
    if not read:
        raise RaspLensError(f"Nothing reads {variable!r} in the compiled model.")
    found: dict[str, Use] = {}
    for point in pairing.learned.residual_points:
        if written <= stage(point) <= min(read):
            found[point] = "used"
        elif stage(point) > max(read):
            found[point] = "unused"
    return found


def stages_read(compiled: CompiledModel, variable: str) -> list[int]:
    """At which stages of the compiled model's stream something reads a variable: see `stage`.

    What a part reads and a variable's own directions are the compiler's: where they have none in common, their
    product is exactly zero.
    """
    model, projector = compiled.transformer, compiled.variables[variable].projector
    graph = edge_graph(model.config)
    found: set[int] = set()
    for receiver in graph.receivers:
        if not (projector @ directions_read(model, receiver)).any():
            continue
        if receiver == LOGITS:
            found.add(2 * model.config.n_layers)
            continue
        layer, head = place_of(graph.node_of(receiver))
        found.add(2 * layer + (head is None))
    return sorted(found)


def stage(point: str) -> int:
    """The number of a hook point of the residual stream, in forward order; a layer's end is the next's start."""
    return 2 * layer_of(point) + STATES.index(point.rpartition("_")[2])
