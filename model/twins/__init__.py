"""Exact re-writings of a transformer: other parts, the same function on every input."""

from rasplens.model.twins.heads import (
    duplicate_head,
    insert_idle_heads,
    merge_heads,
    split_head,
    without_idle_heads,
)
from rasplens.model.twins.layers import insert_idle_layer
from rasplens.model.twins.pathways import plant_decoy, plant_dormant_pathway, plant_redundant_pathway
from rasplens.model.twins.self_edges import add_self_edges

__all__ = [
    "add_self_edges",
    "duplicate_head",
    "insert_idle_heads",
    "insert_idle_layer",
    "merge_heads",
    "plant_decoy",
    "plant_dormant_pathway",
    "plant_redundant_pathway",
    "split_head",
    "without_idle_heads",
]
