"""Pairs of programs with the same answers by different computations: what calibration compiles.

`CIRCUITS` are plain ones; `HARD` are families of pairs that are easily taken for the same, the module says on
which inputs they answer alike. The programs are those of `lab/programs/`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from lab.labelled.circuits.always_equal import ALWAYS_EQUAL
from lab.labelled.circuits.circuit import Circuit
from lab.labelled.circuits.on_some_inputs import ON_SOME_INPUTS
from lab.labelled.circuits.plain import PLAIN

__all__ = ["CIRCUITS", "FAMILIES", "HARD", "NOT_TOLD_APART", "Circuit"]

CIRCUITS = {circuit.name: circuit for circuit in PLAIN}
"""The plain circuits by name."""

HARD = {circuit.name: circuit for circuit in (*ALWAYS_EQUAL, *ON_SOME_INPUTS)}
"""The circuits of the hard families by name."""

FAMILIES = tuple(dict.fromkeys(circuit.family for circuit in HARD.values()))
"""The hard families."""

_COMPLEMENT = "What one gathers is the complement of what the other does: the same but for a sign and a constant."
_COARSER = (
    "The other program gathers two means, from which this one's single mean follows. So this program is a coarser "
    "description of the same computation, and right. The other way round they are told apart."
)
_UNSEEN = (
    "On the task's inputs `a` stands at the first position and nowhere else, and no other token there. Nothing in "
    "the model changes with where it stands, and no intervention moves it. Inputs with `a` elsewhere would tell."
)
NOT_TOLD_APART: Mapping[str, str] = MappingProxyType(
    {
        "share_of_own": _COMPLEMENT,
        "share_of_rest": _COMPLEMENT,
        "more_by_difference": _COARSER,
        "sum_by_total": _COARSER,
        "behind_first": _UNSEEN,
        "behind_a": _UNSEEN,
    }
)
"""By the name of a program, why nothing tells a model of its circuit's other program from one of its own."""
