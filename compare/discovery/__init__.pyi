"""The names of the package, each imported from its module when it is first used."""

from .cases import (
    KINDS,
    Case,
    compiled_case,
    compressed_case,
    disguised_case,
    siit_case,
)
from .hypothesis_tests import (
    CircuitTest,
    circuit_tests,
)
from .importances import (
    read_importances,
    write_importances,
)
from .methods.catalogue import (
    METHODS,
    own_method,
)
from .problem import (
    Problem,
    Protocol,
    discovery_problem,
)
from .scoreboard import (
    board,
)
from .scoring import (
    MethodScore,
    score_edges,
)

__all__ = [
    "KINDS",
    "METHODS",
    "Case",
    "CircuitTest",
    "MethodScore",
    "Problem",
    "Protocol",
    "board",
    "circuit_tests",
    "compiled_case",
    "compressed_case",
    "discovery_problem",
    "disguised_case",
    "own_method",
    "read_importances",
    "score_edges",
    "siit_case",
    "write_importances",
]
