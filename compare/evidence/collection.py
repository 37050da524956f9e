"""All evidence of a comparison, axis by axis in the order in which it is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from rasplens.compare.evidence.ablation.edges import edge_effects
from rasplens.compare.evidence.ablation.measurement import Effects
from rasplens.compare.evidence.attention.heads import HeadSimilarities, head_similarities, split_heads
from rasplens.compare.evidence.axes import (
    Axis,
    ablation_axis,
    attention_axis,
    behaviour_axis,
    interchange_axis,
    subspaces_axis,
)
from rasplens.compare.evidence.behaviour import Behaviour, DistinguishingInputs, behaviour
from rasplens.compare.evidence.interchange.accuracy import Interchange, interchanges
from rasplens.compare.evidence.interchange.joint import JointInterchange, joint_interchanges
from rasplens.compare.evidence.interchange.pairs import draw_pairs, intermediate_variables
from rasplens.compare.evidence.interchange.reference_sites import ReferenceSites
from rasplens.compare.evidence.routes.agreement import RouteTest, route_tests
from rasplens.compare.evidence.routes.attended import Attended, attended
from rasplens.compare.evidence.subspaces.decodability import Decodability, decodability
from rasplens.compare.evidence.subspaces.representations import Place, Representation, representations
from rasplens.compare.models.pairing import Pairing
from rasplens.compare.models.threads import few_threads

STAGES = ("behaviour", "routes", "interchange", "residual subspaces", "attention", "edge ablations")

Progress = Callable[[str], None]
"""Called with the name of each stage as it begins."""


@dataclass(frozen=True, eq=False)
class CausalTests:
    """What the claims of a program are judged by.

    Attributes:
        representations: How the learned residual stream represents the variables.
        interchanged: What the variables do in the learned model.
        joint: What two of them do together.
        routes: The questions about routes, and if none could be asked, why.
        attended: How heads attend, against the program's selectors.
        behaviour: How the model answers.
    """

    representations: dict[Place, Representation]
    interchanged: list[Interchange]
    joint: list[JointInterchange]
    routes: tuple[list[RouteTest], str]
    attended: list[Attended]
    behaviour: Behaviour


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence of a comparison.

    Attributes:
        decodability: Of the variables in the learned residual stream.
        attention: How heads attend.
        shared_heads: Which heads share a job, see `split_heads`.
        causal: What decides.
        edges: The ablation effects of attention edges, by side.
        axes: All of it on one scale.
    """

    decodability: Decodability
    attention: HeadSimilarities
    shared_heads: pd.DataFrame
    causal: CausalTests
    edges: Mapping[str, Effects]
    axes: tuple[Axis, ...]


def causal_tests(
    pairing: Pairing,
    distinguishing: Mapping[str, DistinguishingInputs],
    seed: int,
    progress: Progress | None = None,
) -> CausalTests:
    """The tests of a program's claims.

    Args:
        pairing: The models on the same inputs.
        distinguishing: By the alternative program's name, inputs that distinguish it from the reference.
        seed: Of pairs and controls.
        progress: Called as each stage begins.
    """
    begin = progress or (lambda stage: None)
    with few_threads(pairing.reference.model, pairing.learned.model):
        begin("behaviour")
        behaved = behaviour(pairing, distinguishing, seed)
        begin("routes")
        routes = route_tests(pairing, seed)
        begin("interchange")
        drawn, held = draw_pairs(pairing, seed), representations(pairing)
        reference = ReferenceSites(pairing, seed)
        interchanged = interchanges(pairing, drawn, held, reference, seed)
        joint = list(joint_interchanges(pairing, drawn, interchanged, reference, seed))
        return CausalTests(held, interchanged, joint, routes, list(attended(pairing)), behaved)


def collect_evidence(
    pairing: Pairing,
    distinguishing: Mapping[str, DistinguishingInputs],
    seed: int,
    progress: Progress | None = None,
) -> Evidence:
    """All evidence: the tests of the claims, and what describes the models beside them.

    Args:
        pairing: The models on the same inputs.
        distinguishing: By the alternative program's name, inputs that distinguish it from the reference.
        seed: Of pairs, shuffles and bootstrap.
        progress: Called as each stage begins.
    """
    begin, config = progress or (lambda stage: None), pairing.config
    draws = config.bootstrap_draws
    causal = causal_tests(pairing, distinguishing, seed, progress)
    begin("residual subspaces")
    decoded = decodability(pairing, seed)
    begin("attention")
    attention = head_similarities(pairing, seed)
    shared = split_heads(pairing, attention)
    begin("edge ablations")
    edges = {
        "compiled": edge_effects(pairing.reference, config, seed),
        "learned": edge_effects(pairing.learned, config, seed),
    }
    axes = (
        behaviour_axis(causal.behaviour, seed, draws),
        interchange_axis(causal.interchanged, seed, draws),
        attention_axis(pairing, attention, seed),
        ablation_axis(pairing, edges["compiled"], edges["learned"], seed),
        subspaces_axis(decoded, intermediate_variables(pairing), seed, draws),
    )
    return Evidence(decoded, attention, shared, causal, edges, axes)
