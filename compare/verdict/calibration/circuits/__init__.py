"""Pairs of programs with the same answers by different computations: what calibration compiles.

`CIRCUITS` are plain ones; `HARD` are families of pairs that are easily taken for the same, by family in a module
of their own.
"""

from collections.abc import Mapping
from types import MappingProxyType

from rasplens.compare.verdict.calibration.circuits import (
    algorithms,
    association,
    looking_and_counting,
    nested_selectors,
    partly_right,
    relays,
    same_attention,
    uniform_attention,
    untold,
    width_and_mean,
)
from rasplens.compare.verdict.calibration.circuits.circuit import Circuit
from rasplens.compare.verdict.calibration.circuits.plain import PLAIN

__all__ = ["CIRCUITS", "FAMILIES", "HARD", "NOT_TOLD_APART", "Circuit"]

_HARD = (
    *same_attention.CIRCUITS,
    *uniform_attention.CIRCUITS,
    *width_and_mean.CIRCUITS,
    *looking_and_counting.CIRCUITS,
    *association.CIRCUITS,
    *relays.CIRCUITS,
    *nested_selectors.CIRCUITS,
    *algorithms.CIRCUITS,
    *partly_right.CIRCUITS,
    *untold.CIRCUITS,
)

CIRCUITS = {circuit.name: circuit for circuit in PLAIN}
"""The plain circuits by name."""

HARD = {circuit.name: circuit for circuit in _HARD}
"""The circuits of the hard families by name."""

FAMILIES = tuple(dict.fromkeys(circuit.family for circuit in _HARD))
"""The hard families."""

NOT_TOLD_APART: Mapping[str, str] = MappingProxyType(
    {
        "repeated": "Counting how often the own token occurs and looking for it at other positions go along "
        "the same edges, and only whether there is another one matters behind them. Both programs make the same "
        "causal claims of edges and variables."
    }
)
"""By the name of a circuit, why no intervention on edges or variables tells its two programs apart."""
