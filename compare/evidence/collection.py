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
from rasplens.compare.evidence.interchange.pairs import draw_pairs, intermediate_variables
from rasplens.compare.evidence.subspaces.decodability import Decodability, decodability
from rasplens.compare.evidence.subspaces.representations import Place, Representation, representations
from rasplens.compare.models.pairing import Pairing

STAGES = ("residual subspaces", "attention", "interchange", "edge ablations", "behaviour")

Progress = Callable[[str], None]
"""Called with the name of each stage as it begins."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence behind the axes of a comparison.

    Attributes:
        decodability: Of the variables in the learned residual stream.
        representations: How that represents them.
        attention: How heads attend.
        shared_heads: Which heads share a job, see `split_heads`.
        interchanged: What the variables do there.
        edges: The ablation effects of attention edges, by side.
        behaviour: How the model answers.
        axes: All of it on one scale.
    """

    decodability: Decodability
    representations: dict[Place, Representation]
    attention: HeadSimilarities
    shared_heads: pd.DataFrame
    interchanged: list[Interchange]
    edges: Mapping[str, Effects]
    behaviour: Behaviour
    axes: tuple[Axis, ...]


def collect_evidence(
    pairing: Pairing,
    distinguishing: Mapping[str, DistinguishingInputs],
    seed: int,
    progress: Progress | None = None,
) -> Evidence:
    """The evidence that a verdict needs.

    Args:
        pairing: The models on the same inputs.
        distinguishing: By the alternative program's name, inputs that distinguish it from the reference.
        seed: Of pairs, shuffles and bootstrap.
        progress: Called as each stage begins.
    """
    begin, config = progress or (lambda stage: None), pairing.config
    draws = config.bootstrap_draws
    begin("residual subspaces")
    decoded = decodability(pairing, seed)
    held, floor = representations(pairing), representations(pairing, "untrained")
    begin("attention")
    attention = head_similarities(pairing, seed)
    shared = split_heads(pairing, attention)
    begin("interchange")
    interchanged = interchanges(pairing, draw_pairs(pairing, seed), held, floor, seed)
    begin("edge ablations")
    edges = {
        "compiled": edge_effects(pairing.reference, config, seed),
        "learned": edge_effects(pairing.learned, config, seed),
    }
    begin("behaviour")
    behaved = behaviour(pairing, distinguishing, seed)
    axes = (
        behaviour_axis(behaved, seed, draws),
        interchange_axis(interchanged, seed, draws),
        attention_axis(pairing, attention, seed),
        ablation_axis(pairing, edges["compiled"], edges["learned"], seed),
        subspaces_axis(decoded, intermediate_variables(pairing), seed, draws),
    )
    return Evidence(decoded, held, attention, shared, interchanged, edges, behaved, axes)
