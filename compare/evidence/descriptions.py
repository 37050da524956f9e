"""The tidy tables of a comparison: those of its evidence, and those that only describe."""

import pandas as pd

from rasplens.compare.evidence.ablation.effects import (
    head_effects,
    head_position_effects,
    joint_effects,
    neuron_effects,
)
from rasplens.compare.evidence.ablation.profiles import matched_profiles
from rasplens.compare.evidence.collection import Evidence
from rasplens.compare.evidence.examples import examples_table
from rasplens.compare.evidence.interchange.accuracy import interchange_table
from rasplens.compare.evidence.routes.agreement import route_table
from rasplens.compare.evidence.subspaces.representations import explained_table, overlap_table
from rasplens.compare.evidence.subspaces.similarity import stream_similarity
from rasplens.compare.models.pairing import Pairing


def descriptions(pairing: Pairing, found: Evidence, seed: int) -> dict[str, pd.DataFrame]:
    """The tidy tables of a comparison: those of the evidence, and those that only describe."""
    config = pairing.config
    tables = {
        "examples": examples_table(pairing),
        "behaviour": found.causal.behaviour.table,
        "interchange": interchange_table(found.causal.interchanged),
        "routes": route_table(found.causal.routes[0]),
        "attention": found.attention.table,
        "shared_heads": found.shared_heads,
        "decodability": found.decodability.table,
        "representations": explained_table(found.causal.representations),
        "overlaps": overlap_table(found.causal.representations),
        "similarity": stream_similarity(pairing, seed),
    }
    for side, studied in (("compiled", pairing.reference), ("learned", pairing.learned)):
        tables |= {
            f"heads_{side}": head_effects(studied, config, seed).table,
            f"head_positions_{side}": head_position_effects(studied, config, seed).table,
            f"joint_{side}": joint_effects(studied, config, seed),
            f"edges_{side}": found.edges[side].table,
        }
    matched = found.attention.table[found.attention.table["matched"].astype(bool)]
    positions = tables["head_positions_compiled"], tables["head_positions_learned"]
    tables["matched_profiles"] = matched_profiles(matched, *positions, seed, config.profile_permutations)
    tables["neurons_learned"] = neuron_effects(pairing.learned, config, seed).table
    return tables
