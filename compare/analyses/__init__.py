"""Analyses of one model on a task: those that the published interpretations rest on.

Each takes a `StudiedModel`, which `rasplens.compare.as_studied_model` makes of any model, compiled ones too.
"""

from rasplens.compare.analyses.averaging import AveragedAttention, average_attention
from rasplens.compare.analyses.critical import CriticalEdges, critical_edges
from rasplens.compare.analyses.flow import flow_figure
from rasplens.compare.analyses.heuristics import SortingHeuristics, sorting_heuristics
from rasplens.compare.analyses.leakage import attention_leakage
from rasplens.compare.analyses.lens import lens_table
from rasplens.compare.analyses.reconstruction import LogitTerms, logit_terms
from rasplens.compare.analyses.separability import position_separability

__all__ = [
    "AveragedAttention",
    "CriticalEdges",
    "LogitTerms",
    "SortingHeuristics",
    "attention_leakage",
    "average_attention",
    "critical_edges",
    "flow_figure",
    "lens_table",
    "logit_terms",
    "position_separability",
    "sorting_heuristics",
]
