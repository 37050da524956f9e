"""From a RASP expression to a graph of primitive operations.

Lowering makes explicit what an expression leaves to the reader: a width is the share of attention that
the beginning-of-sequence position keeps, and then a lookup; where a construction needs one direction per
value and the variable is a number, a lookup in between makes it categorical.
"""

from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

from rasplens.compile import rasp
from rasplens.compile.errors import CompileError
from rasplens.compile.graph import (
    Apply,
    BosShare,
    Both,
    Choose,
    Gather,
    Graph,
    Indices,
    Linear,
    Match,
    MatchBest,
    Node,
    Tokens,
)
from rasplens.compile.rasp import Encoding, Value


def build_graph(program: rasp.SOp) -> Graph:
    """The graph of a program; shared expressions become one node.

    Raises:
        CompileError: If the program is no s-op, or combines selectors in a way that no head can.
    """
    if not isinstance(program, rasp.SOp):
        raise CompileError(f"A program is an s-op; got {program!r}. Aggregate over a selector first.", program)
    builder = _Builder()
    builder.lower(rasp.tokens)
    output = builder.lower(program)
    return Graph(tuple(builder.nodes), output)


@dataclass
class _Builder:
    """The nodes so far, and which expressions they stand for."""

    nodes: list[Node] = field(default_factory=list)
    lowered: dict[int, int] = field(default_factory=dict)
    casts: dict[tuple[int, Encoding], int] = field(default_factory=dict)
    used_names: dict[str, int] = field(default_factory=dict)
    kept_alive: list[rasp.RASPExpr] = field(default_factory=list)

    def lower(self, expr: rasp.RASPExpr) -> int:
        """The node of an expression, made on first sight."""
        if id(expr) not in self.lowered:
            self.lowered[id(expr)] = _lower(expr, self)
            self.kept_alive.append(expr)  # so that no later expression can take over its id
        return self.lowered[id(expr)]

    def add(self, op: Any, inputs: tuple[int, ...], expr: rasp.RASPExpr, name: str | None = None) -> int:
        """A new node, encoded as its expression says."""
        encoding = expr.encoding if isinstance(expr, rasp.SOp) else None
        return self._append(Node(op, inputs, self._unique(name or expr.name), encoding, expr))

    def cast(self, node: int, encoding: Encoding) -> int:
        """The variable in the given encoding: itself, or a lookup from it."""
        source = self.nodes[node]
        if source.encoding is encoding:
            return node
        if (node, encoding) not in self.casts:
            name = self._unique(f"{source.name} as {encoding.value}")
            cast = Node(Apply(_identity), (node,), name, encoding, source.expr)
            self.casts[node, encoding] = self._append(cast)
        return self.casts[node, encoding]

    def categorical(self, expr: rasp.RASPExpr) -> int:
        """The node of an expression with one direction per value."""
        return self.cast(self.lower(expr), Encoding.CATEGORICAL)

    def _append(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _unique(self, name: str) -> str:
        count = self.used_names.get(name, 0) + 1
        self.used_names[name] = count
        return name if count == 1 else self._unique(f"{name} ({count})")


def _identity(value: Value) -> Value:
    return value


@singledispatch
def _lower(expr: rasp.RASPExpr, builder: _Builder) -> int:
    raise CompileError(f"{expr!r} cannot be compiled.", expr)


@_lower.register
def _(expr: rasp.TokensType, builder: _Builder) -> int:
    return _primitive(Tokens(), rasp.tokens, expr, builder)


@_lower.register
def _(expr: rasp.IndicesType, builder: _Builder) -> int:
    return _primitive(Indices(), rasp.indices, expr, builder)


def _primitive(op: Any, plain: rasp.SOp, expr: rasp.SOp, builder: _Builder) -> int:
    """Tokens and indices are embedded one direction per value; an annotated copy is a lookup from that."""
    if expr is plain:
        return builder.add(op, (), expr)
    source = builder.lower(plain)
    if expr.encoding is Encoding.CATEGORICAL:
        return source
    return builder.cast(source, expr.encoding)


@_lower.register
def _(expr: rasp.LengthType, builder: _Builder) -> int:
    everything = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
    return _width(expr, everything, builder)


@_lower.register
def _(expr: rasp.Full, builder: _Builder) -> int:
    fill = expr.fill
    return builder.add(Apply(lambda token: fill), (builder.lower(rasp.tokens),), expr)


@_lower.register
def _(expr: rasp.ConstantSOp, builder: _Builder) -> int:
    values = list(expr.value)
    read = Apply(lambda index: values[index] if index < len(values) else None)
    return builder.add(read, (builder.lower(rasp.indices),), expr)


@_lower.register
def _(expr: rasp.Map, builder: _Builder) -> int:
    return builder.add(Apply(expr.f), (builder.lower(expr.inner),), expr)


@_lower.register
def _(expr: rasp.SequenceMap, builder: _Builder) -> int:
    return builder.add(Apply(expr.f), (builder.categorical(expr.fst), builder.categorical(expr.snd)), expr)


@_lower.register
def _(expr: rasp.LinearSequenceMap, builder: _Builder) -> int:
    if expr.encoding is Encoding.CATEGORICAL:
        inputs = builder.categorical(expr.fst), builder.categorical(expr.snd)
        return builder.add(Apply(expr.f), inputs, expr)
    inputs = builder.lower(expr.fst), builder.lower(expr.snd)
    return builder.add(Linear(expr.fst_fac, expr.snd_fac), inputs, expr)


@_lower.register
def _(expr: rasp.Where, builder: _Builder) -> int:
    branch = builder.categorical if expr.encoding is Encoding.CATEGORICAL else builder.lower
    inputs = builder.categorical(expr.condition), branch(expr.then), branch(expr.otherwise)
    return builder.add(Choose(), inputs, expr)


@_lower.register
def _(expr: rasp.SelectorWidth, builder: _Builder) -> int:
    return _width(expr, expr.selector, builder)


def _width(expr: rasp.SOp, selector: rasp.Selector, builder: _Builder) -> int:
    counted = builder.lower(selector)
    if isinstance(builder.nodes[counted].op, MatchBest):
        raise CompileError(f"{expr.name!r} counts what a SelectBest selects, which no head can.", expr)
    share = rasp.numerical(expr).named(f"{expr.name} (BOS share)")
    attended = builder.add(BosShare(), (counted,), share)
    return builder.add(Apply(_width_of_share), (attended,), expr)


def _width_of_share(share: float) -> int:
    return round(1 / share) - 1


@_lower.register
def _(expr: rasp.Aggregate, builder: _Builder) -> int:
    selector, values = builder.lower(expr.selector), builder.lower(expr.sop)
    mixes = builder.nodes[values].encoding is Encoding.NUMERICAL
    if mixes and expr.encoding is Encoding.CATEGORICAL:
        mean = rasp.numerical(expr).named(f"{expr.name} (mean)")
        return builder.cast(builder.add(Gather(expr.default), (selector, values), mean), Encoding.CATEGORICAL)
    return builder.add(Gather(expr.default), (selector, values), expr)


@_lower.register
def _(expr: rasp.SelectBest, builder: _Builder) -> int:
    inputs = tuple(builder.categorical(part) for part in (expr.keys, expr.queries, expr.score))
    return builder.add(MatchBest(expr.predicate), inputs, expr)


@_lower.register
def _(expr: rasp.Selector, builder: _Builder) -> int:
    match = _as_match(expr, builder)
    if match is not None:
        return builder.add(match.op, (match.keys, match.queries), expr)
    if not isinstance(expr, rasp.SelectorAnd):
        raise CompileError(
            f"{expr!r} combines selectors over different keys or queries, which only & can. "
            "Rewrite it as one Select over a SequenceMap of the keys and one of the queries.",
            expr,
        )
    parts = tuple(leaf for side in (expr.fst, expr.snd) for leaf in _conjuncts(builder.lower(side), builder))
    if any(isinstance(builder.nodes[part].op, MatchBest) for part in parts):
        raise CompileError(
            f"{expr!r} restricts a SelectBest from outside. Put the restriction into its predicate.", expr
        )
    return builder.add(Both(), parts, expr)


def _conjuncts(node: int, builder: _Builder) -> tuple[int, ...]:
    return builder.nodes[node].inputs if isinstance(builder.nodes[node].op, Both) else (node,)


@dataclass(frozen=True)
class _PlainMatch:
    """A selector that is a predicate of one key variable and one query variable."""

    op: Match
    keys: int
    queries: int


@singledispatch
def _as_match(expr: rasp.Selector, builder: _Builder) -> _PlainMatch | None:
    return None


@_as_match.register
def _(expr: rasp.Select, builder: _Builder) -> _PlainMatch | None:
    return _PlainMatch(Match(expr.predicate), builder.categorical(expr.keys), builder.categorical(expr.queries))


@_as_match.register
def _(expr: rasp.ConstantSelector, builder: _Builder) -> _PlainMatch | None:
    rows = [list(row) for row in expr.value]

    def selected(key: int, query: int) -> bool:
        return query < len(rows) and key < len(rows[query]) and rows[query][key]

    indices = builder.lower(rasp.indices)
    return _PlainMatch(Match(selected), indices, indices)


@_as_match.register
def _(expr: rasp.SelectorNot, builder: _Builder) -> _PlainMatch | None:
    inner = _as_match(expr.inner, builder)
    if inner is None:
        return None
    predicate = inner.op.predicate
    negated = Match(lambda key, query: not predicate(key, query), is_total=True)
    return _PlainMatch(negated, inner.keys, inner.queries)


@_as_match.register(rasp.SelectorAnd)
@_as_match.register(rasp.SelectorOr)
def _(expr: rasp.SelectorAnd | rasp.SelectorOr, builder: _Builder) -> _PlainMatch | None:
    fst, snd = _as_match(expr.fst, builder), _as_match(expr.snd, builder)
    if fst is None or snd is None or (fst.keys, fst.queries) != (snd.keys, snd.queries):
        return None
    combine = all if isinstance(expr, rasp.SelectorAnd) else any
    predicates = fst.op.predicate, snd.op.predicate
    op = Match(
        lambda key, query: combine(predicate(key, query) for predicate in predicates),
        is_total=fst.op.is_total or snd.op.is_total,
    )
    return _PlainMatch(op, fst.keys, fst.queries)
