"""Evidence on two models that decides nothing, beside the claims: five axes, and tidy tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pandas as pd

from rasplens.compare.axes import (
    Axis,
    ablation_axis,
    attention_axis,
    behaviour_axis,
    interchange_axis,
    subspaces_axis,
)
from rasplens.compare.claims.answers import ANSWERS
from rasplens.compare.claims.kind import Evidence
from rasplens.compare.claims.variables import VARIABLES
from rasplens.compare.evidence.ablation.edges import edge_effects
from rasplens.compare.evidence.ablation.effects import (
    head_effects,
    head_position_effects,
    joint_effects,
    neuron_effects,
)
from rasplens.compare.evidence.ablation.measurement import METHODS, Method
from rasplens.compare.evidence.ablation.profiles import (
    Correlation,
    Overlap,
    correlate,
    critical_overlap,
    matched_profiles,
)
from rasplens.compare.evidence.attention.heads import head_similarities, split_heads
from rasplens.compare.evidence.examples import examples_table
from rasplens.compare.evidence.subspaces.decodability import decodability
from rasplens.compare.evidence.subspaces.similarity import stream_similarity
from rasplens.compare.study import Study

STAGES = "residual subspaces", "attention", "edge ablations", "tables"


@dataclass(frozen=True, eq=False)
class Descriptions:
    """The evidence that describes two models and decides nothing.

    Attributes:
        axes: The evidence on one scale.
        tables: Tidy frames by name.
        correlations: By method of ablation, of the two edge profiles; None where a profile is constant.
        overlaps: By method of ablation, of the critical edges.
    """

    axes: tuple[Axis, ...] = ()
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    correlations: Mapping[Method, Correlation | None] = field(default_factory=dict)
    overlaps: Mapping[Method, Overlap] = field(default_factory=dict)


PART: Final = Descriptions()
"""Of a part of a model nothing is described: a model as a whole is not like one of its parts."""


def descriptions(study: Study, evidence: Evidence, seed: int, begin: Callable[[str], None]) -> Descriptions:
    """The axes and the tables of a comparison.

    Args:
        study: The models on the same inputs.
        evidence: The evidence on the claims.
        seed: Of shuffles and bootstrap.
        begin: Called with each of the `STAGES`.
    """
    pairing, config = study.scored, study.config
    sides = {"compiled": pairing.reference, "learned": pairing.learned}
    begin("residual subspaces")
    decoded = decodability(study, seed)
    begin("attention")
    attention = head_similarities(pairing, seed)
    shared = split_heads(pairing, attention)
    begin("edge ablations")
    edges = {side: edge_effects(studied, config, seed) for side, studied in sides.items()}
    draws = config.bootstrap_draws
    axes = (
        behaviour_axis(evidence.of(ANSWERS), seed, draws),
        interchange_axis(evidence.of(VARIABLES).interchanged, seed, draws),
        attention_axis(pairing, attention, seed),
        ablation_axis(pairing, edges["compiled"], edges["learned"], seed),
        subspaces_axis(decoded, list(study.variables), seed, draws),
    )
    begin("tables")
    tables = {
        "examples": examples_table(pairing),
        "attention": attention.table,
        "shared_heads": shared,
        "decodability": decoded.table,
        "similarity": stream_similarity(pairing, seed),
    }
    for side, studied in sides.items():
        tables |= {
            f"heads_{side}": head_effects(studied, config, seed).table,
            f"head_positions_{side}": head_position_effects(studied, config, seed).table,
            f"joint_{side}": joint_effects(studied, config, seed),
            f"edges_{side}": edges[side].table,
        }
    matched = attention.table[attention.table["matched"].astype(bool)]
    positions = tables["head_positions_compiled"], tables["head_positions_learned"]
    tables["matched_profiles"] = matched_profiles(matched, *positions, seed, config.profile_permutations)
    tables["neurons_learned"] = neuron_effects(pairing.learned, config, seed).table
    profiles = edges["compiled"].table, edges["learned"].table
    correlations = {method: correlate(*profiles, method, seed, config.profile_permutations) for method in METHODS}
    overlaps = {method: critical_overlap(*profiles, method) for method in METHODS}
    return Descriptions(axes, tables, correlations, overlaps)
