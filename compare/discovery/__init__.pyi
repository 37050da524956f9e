"""The names of the package, each imported from its module when it is first used."""

from .cases import (
    KINDS,
    Case,
    compiled_case,
    compressed_case,
    disguised_case,
    planted_case,
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
    discovery_problem,
)
from .protocol import (
    Protocol,
    Scoring,
    Setting,
)
from .scoreboard import (
    MethodRun,
    board,
    board_of,
    edge_scores,
    method_runs,
)
from .scoring import (
    MethodScore,
    score_edges,
)
from .variables.finders import (
    FINDERS,
    Found,
)
from .variables.problem import (
    VariableProblem,
    variable_problems,
)
from .variables.scoring import (
    VariableScore,
    score_variable,
    variable_board,
)

__all__ = [
    "FINDERS",
    "KINDS",
    "METHODS",
    "Case",
    "CircuitTest",
    "Found",
    "MethodRun",
    "MethodScore",
    "Problem",
    "Protocol",
    "Scoring",
    "Setting",
    "VariableProblem",
    "VariableScore",
    "board",
    "board_of",
    "circuit_tests",
    "compiled_case",
    "compressed_case",
    "discovery_problem",
    "disguised_case",
    "edge_scores",
    "method_runs",
    "own_method",
    "planted_case",
    "read_importances",
    "score_edges",
    "score_variable",
    "siit_case",
    "variable_board",
    "variable_problems",
    "write_importances",
]
