"""The graph that the compiler works on: primitive operations, each one head or one block of neurons."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rasplens.compile import rasp
from rasplens.compile.rasp import Encoding, Predicate, Value


@dataclass(frozen=True)
class Tokens:
    """The token at each position."""


@dataclass(frozen=True)
class Indices:
    """The position."""


@dataclass(frozen=True)
class Apply:
    """A function of one variable or two.

    Attributes:
        function: Of the values.
        takes_none: Whether it is to be called on undefined values too; otherwise what depends on them is
            undefined.
    """

    function: Callable[..., Value]
    takes_none: bool = False


@dataclass(frozen=True)
class Linear:
    """`fst_fac · x + snd_fac · y` of two variables, as a number."""

    fst_fac: float
    snd_fac: float


@dataclass(frozen=True)
class Choose:
    """Of (condition, then, otherwise), the branch that the condition says."""


@dataclass(frozen=True)
class Gather:
    """Of (selector, variable), the mean over what is selected; the default where nothing is.

    Of several such pairs, of which at most one selects anything for a query, the mean over that.
    """

    default: Value


@dataclass(frozen=True)
class BosShare:
    """Of (selector,), 1 / (1 + number selected): what is left to a BOS that is always selected too.

    Attributes:
        of_length: Whether it stands for the length of the sequence, which every position must then see.

    Source: Lindner et al. 2023, appendix D.2.
    """

    of_length: bool = False


@dataclass(frozen=True)
class Match:
    """Of (keys, queries), a selector by predicate.

    Attributes:
        predicate: Of (key, query).
        takes_none: Whether it is to be called on undefined values too (a negation may select those);
            otherwise they are never selected.
    """

    predicate: Predicate
    takes_none: bool = False


@dataclass(frozen=True)
class MatchBest:
    """Of (keys, queries, score), a selector of the best-scoring keys that satisfy the predicate."""

    predicate: Predicate


@dataclass(frozen=True)
class Both:
    """Of several `Match`es, the selector of what all of them select."""


SELECTORS = (Match, MatchBest, Both)


@dataclass(frozen=True, eq=False)
class Node:
    """One operation of a graph.

    Attributes:
        op: What it does.
        inputs: The ids of the nodes that it reads, in the order that the operation states.
        name: A name of its own, for people.
        encoding: How the residual stream holds it; None for selectors, which are held nowhere.
        expr: The expression that it comes from.
    """

    op: Any
    inputs: tuple[int, ...]
    name: str
    encoding: Encoding | None
    expr: rasp.RASPExpr

    @property
    def is_selector(self) -> bool:
        """Whether it is a selector, and no variable."""
        return isinstance(self.op, SELECTORS)


@dataclass(frozen=True, eq=False)
class Graph:
    """Operations in an order in which each comes after what it reads; a node's id is its place.

    Attributes:
        nodes: The operations; the first is always `Tokens`.
        output: The id of the program's result.
        node_of: By `id` of an expression, the id of the node that stands for it.
    """

    nodes: tuple[Node, ...]
    output: int
    node_of: dict[int, int]

    @property
    def variables(self) -> tuple[int, ...]:
        """The ids of everything that the residual stream holds."""
        return tuple(i for i, node in enumerate(self.nodes) if not node.is_selector)
