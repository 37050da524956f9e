"""The two graphs that the compiler works on: lowered operations, and the same over finitely many values.

A program is lowered to a `Graph` of primitive operations, each of which becomes heads, neurons or an embedding.
Analysis makes a `FiniteGraph` of it: every variable has a domain and every Python function has become a table.
Passes and backend see the second alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.rasp import Encoding, Predicate, Value
from rasplens.compile.rasp.values import value_key

UNDEFINED = -1
"""The code of None in tables: as an index it is the last place, which tables keep for it."""


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
class Where:
    """Of (condition, then, otherwise), the branch that the condition says."""


@dataclass(frozen=True)
class Aggregate:
    """Of (selector, variable), the mean over what is selected; the default where nothing is."""

    default: Value


@dataclass(frozen=True)
class BosAttention:
    """Of (selector,), the attention that a BOS gets which is always selected too: 1 / (1 + number selected).

    Attributes:
        of_length: Whether it stands for the length of the sequence, which every position must then see.

    Source: Lindner et al. 2023, appendix D.2.
    """

    of_length: bool = False


@dataclass(frozen=True)
class Select:
    """Of (keys, queries), a selector by predicate.

    Attributes:
        predicate: Of (key, query).
        takes_none: Whether it is to be called on undefined values too (a negation may select those);
            otherwise they are never selected.
    """

    predicate: Predicate
    takes_none: bool = False


@dataclass(frozen=True)
class SelectBest:
    """Of (keys, queries, score), a selector of the best-scoring keys that satisfy the predicate."""

    predicate: Predicate


@dataclass(frozen=True)
class SelectBestMatch:
    """Of (keys, queries), a selector of the keys that satisfy the predicate and score best for the query.

    Attributes:
        predicate: Of (key, query).
        score: Of (key, query), called where the predicate holds; None is no score.
    """

    predicate: Predicate
    score: Callable[[Value, Value], Value]


@dataclass(frozen=True)
class Conjunction:
    """Of several selectors by predicate, the selector of what all of them select."""


VariableOp = Tokens | Indices | Apply | Linear | Where | Aggregate | BosAttention
SelectorOp = Select | SelectBest | SelectBestMatch | Conjunction


@dataclass(frozen=True, eq=False)
class GraphNode:
    """One operation of a graph.

    Attributes:
        inputs: The ids of the nodes that it reads, in the order that the operation states.
        name: A name of its own, for people.
        expr: The expression that it comes from.
    """

    inputs: tuple[int, ...]
    name: str
    expr: rasp.RASPExpr


@dataclass(frozen=True, eq=False)
class HeldNode(GraphNode):
    """A variable, lowered or finite.

    Attributes:
        encoding: How the residual stream holds it.
    """

    encoding: Encoding

    @property
    def is_numerical(self) -> bool:
        """Whether it is held as a number."""
        return self.encoding is Encoding.NUMERICAL


@dataclass(frozen=True, eq=False)
class LoweredVariable(HeldNode):
    """A variable and the operation that computes it."""

    op: VariableOp


@dataclass(frozen=True, eq=False)
class LoweredSelector(GraphNode):
    """A selector, which the residual stream does not hold, and the operation that it is."""

    op: SelectorOp


@dataclass(frozen=True, eq=False)
class Graph:
    """Operations in an order in which each comes after what it reads; a node's id is its place.

    Attributes:
        nodes: The operations; the first is always `Tokens`.
        output: The id of the program's result.
        node_of: By `id` of an expression, the id of the node that stands for it.
    """

    nodes: tuple[LoweredVariable | LoweredSelector, ...]
    output: int
    node_of: dict[int, int]

    @property
    def variables(self) -> tuple[int, ...]:
        """The ids of everything that the residual stream holds."""
        return tuple(i for i, node in enumerate(self.nodes) if isinstance(node, LoweredVariable))

    def variable(self, i: int) -> LoweredVariable:
        """The variable with an id."""
        node = self.nodes[i]
        if not isinstance(node, LoweredVariable):
            raise TypeError(f"{node.name!r} is a selector where a variable is needed")
        return node


@dataclass(frozen=True, eq=False)
class Domain:
    """The domain of a variable: the values that it can have.

    Attributes:
        values: Its values; a value's place is its code. Numbers held as such are in ascending order.
        is_partial: Whether it can also be undefined.
    """

    values: tuple[Value, ...]
    is_partial: bool

    def codes(self) -> dict[tuple[Any, ...], int]:
        """The code of each value, by `value_key`."""
        return {value_key(value): code for code, value in enumerate(self.values)}

    def value(self, code: int) -> Value:
        """The value of a code; None for undefined."""
        return None if code in (UNDEFINED, len(self.values)) else self.values[code]


@dataclass(frozen=True, eq=False)
class VariableNode(HeldNode):
    """A variable over finitely many values; its subclasses say how it is computed.

    Attributes:
        domain: What it can be.
        by_layout: Its codes `[length - 1, position]` where they are known to depend on nothing else.
        kind_of: The variable of which it is only what some reader tells apart; None if it is no such kind.
    """

    domain: Domain
    by_layout: np.ndarray | None = field(default=None, kw_only=True)
    kind_of: str | None = field(default=None, kw_only=True)

    @property
    def values(self) -> tuple[Value, ...]:
        """Its values; a value's place is its code."""
        return self.domain.values

    @property
    def is_partial(self) -> bool:
        """Whether it can be undefined."""
        return self.domain.is_partial


@dataclass(frozen=True, eq=False)
class TokensNode(VariableNode):
    """The token at each position, which is embedded."""


@dataclass(frozen=True, eq=False)
class IndicesNode(VariableNode):
    """The position, which is embedded."""


@dataclass(frozen=True, eq=False)
class LookupNode(VariableNode):
    """A function of one variable or two, known by its table.

    Attributes:
        table: Its codes by the codes of its inputs; the last place of every axis is for undefined inputs.
        met: Which places of the table can be met at all.
        raises: Where the function raised an error, by codes, and the error.
    """

    table: np.ndarray
    met: np.ndarray
    raises: dict[tuple[int, ...], Exception] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LinearNode(VariableNode):
    """`fst_fac · x + snd_fac · y` of two variables, as a number."""

    fst_fac: float
    snd_fac: float


@dataclass(frozen=True, eq=False)
class WhereNode(VariableNode):
    """Of (condition, then, otherwise), the branch that the condition says."""


@dataclass(frozen=True, eq=False)
class AttentionNode(VariableNode):
    """A variable that attention heads compute.

    Attributes:
        fallbacks: What it is where its selectors select nothing: one value, none if that cannot be.
    """

    fallbacks: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class AggregateNode(AttentionNode):
    """Of (selector, variable), the mean over what is selected.

    Of several such pairs, of which at most one selects anything for a query, the mean over that.
    """

    @property
    def pairs(self) -> Iterator[tuple[int, int]]:
        """Each selector and the variable that is averaged over what it selects; one head each."""
        return zip(self.inputs[::2], self.inputs[1::2], strict=True)


@dataclass(frozen=True, eq=False)
class BosAttentionNode(AttentionNode):
    """Of (selector,), the attention that a BOS gets which is always selected too."""


@dataclass(frozen=True, eq=False)
class SelectorNode(GraphNode):
    """A selector over variables of finitely many values; its subclasses say what it selects.

    Attributes:
        may_be_empty: Whether it may select nothing where a position sees something.
    """

    may_be_empty: bool


@dataclass(frozen=True, eq=False)
class PredicateNode(SelectorNode):
    """Of (keys, queries), a selector by predicate, known by its table.

    Attributes:
        table: Booleans `[key code, query code]`; the last place of either axis is for undefined.
        raises: Where the predicate raised an error, by codes, and the error.
    """

    table: np.ndarray
    raises: dict[tuple[int, ...], Exception] = field(default_factory=dict)

    @property
    def keys(self) -> int:
        """The id of the variable that is looked at."""
        return self.inputs[0]

    @property
    def queries(self) -> int:
        """The id of the variable that is looked from."""
        return self.inputs[1]


@dataclass(frozen=True, eq=False)
class EqualityNode(PredicateNode):
    """Of (keys, queries), a selector of the one key that goes with a query: the one with the same code.

    Attributes:
        key_codes: 1 or -1, or all 0 of a key that goes with no query: `[key code, bit]`.
        query_codes: The same of queries: `[query code, bit]`.
    """

    key_codes: np.ndarray = field(kw_only=True)
    query_codes: np.ndarray = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class BestNode(PredicateNode):
    """A selector of the best of the keys that satisfy the predicate; its subclasses say which those are."""


@dataclass(frozen=True, eq=False)
class BestMatchNode(BestNode):
    """Of (keys, queries), a selector of the keys that score best for the query.

    Its table has whole numbers: 0 where a key cannot be selected, else the place of its score, from 1, among those
    that the query gives.
    """


@dataclass(frozen=True, eq=False)
class SelectBestNode(BestNode):
    """Of (keys, queries, score), a selector of the best-scoring keys that satisfy the predicate."""

    @property
    def score(self) -> int:
        """The id of the variable by which keys are ranked."""
        return self.inputs[2]


@dataclass(frozen=True, eq=False)
class ConjunctionNode(SelectorNode):
    """Of several selectors by predicate, the selector of what all of them select; of none, of all that is seen."""


FiniteNode = VariableNode | SelectorNode


@dataclass(frozen=True, eq=False)
class FiniteGraph:
    """A graph over finitely many values; a node's id is its place.

    Attributes:
        nodes: The variables and selectors, each after what it reads; the first is always the tokens.
        output: The id of the program's result.
        names: The ids of the variables by name; one variable may have several.
    """

    nodes: tuple[FiniteNode, ...]
    output: int
    names: dict[str, int]

    @property
    def variables(self) -> tuple[int, ...]:
        """The ids of everything that is no selector."""
        return tuple(i for i, node in enumerate(self.nodes) if isinstance(node, VariableNode))

    def variable(self, i: int) -> VariableNode:
        """The variable with an id."""
        return variable_at(self.nodes, i)

    def selector(self, i: int) -> SelectorNode:
        """The selector with an id."""
        return selector_at(self.nodes, i)

    def predicates(self, selector: int) -> list[PredicateNode]:
        """The predicates whose conjunction a selector is."""
        return predicates_at(self.nodes, selector)


def variable_at(nodes: Sequence[FiniteNode], i: int) -> VariableNode:
    """The node at a place, which must be a variable."""
    node = nodes[i]
    if not isinstance(node, VariableNode):
        raise TypeError(f"{node.name!r} is a selector where a variable is needed")
    return node


def selector_at(nodes: Sequence[FiniteNode], i: int) -> SelectorNode:
    """The node at a place, which must be a selector."""
    node = nodes[i]
    if not isinstance(node, SelectorNode):
        raise TypeError(f"{node.name!r} is a variable where a selector is needed")
    return node


def predicates_at(nodes: Sequence[FiniteNode], selector: int) -> list[PredicateNode]:
    """The predicates whose conjunction the selector at a place is: itself, or the parts of a conjunction."""
    node = selector_at(nodes, selector)
    places = node.inputs if isinstance(node, ConjunctionNode) else (selector,)
    parts = [nodes[i] for i in places]
    found = [part for part in parts if isinstance(part, PredicateNode)]
    if len(found) < len(parts):
        raise TypeError(f"{node.name!r} is not a conjunction of predicates")
    return found
