"""Which of a program's edges each head of the compiled model attends along."""

import numpy as np

from rasplens.compare.claims.edges.program_edges import Aggregates, Edges, program_edges
from rasplens.compare.evidence.attention.active_heads import SELECTS, ActiveHead, active_heads
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head

FEW = 50
"""Inputs on which it is asked along which edges a head attends."""


def heads_along(pairing: Pairing) -> dict[Head, tuple[Aggregates, ...]]:
    """By compiled head with active query rows, the aggregates along whose edges, and no others, it attends."""
    n = min(FEW, pairing.n_inputs)
    read = program_edges(pairing.compiled.program, pairing.task, pairing.ids[:n])
    return {
        one.head: tuple(aggregates for aggregates, edges in read.gathered.items() if _is_along(one, edges, n))
        for one in active_heads(pairing)
    }


def _is_along(one: ActiveHead, edges: Edges, n: int) -> bool:
    rows = one.active_rows[:n]
    return bool(np.all(((one.pattern[:n] > SELECTS) == edges)[rows]))
