"""Pairs of programs with the same answers by different computations: what calibration compiles.

`CIRCUITS` are those that the mapping is fitted and measured on; `HARD` are families of pairs that are easily taken
for the same, by family in a module of their own.
"""

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
from rasplens.compare.verdict.calibration.circuits.plain import FITTED_ON, LOOKED_AT, MEASURED_ON, NEW, PLAIN

__all__ = ["CIRCUITS", "FAMILIES", "FITTED_ON", "HARD", "LOOKED_AT", "MEASURED_ON", "NEW", "Circuit"]

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
"""The circuits of the mapping by name."""

HARD = {circuit.name: circuit for circuit in _HARD}
"""The circuits of the hard families by name; nothing was fitted on them."""

FAMILIES = tuple(dict.fromkeys(circuit.family for circuit in _HARD))
"""The hard families."""
