"""From a RASP expression to a graph of primitive operations.

Lowering makes explicit what an expression leaves to the reader: a width is the share of attention that
the beginning-of-sequence position keeps, and then a lookup; where a construction needs one direction per
value and the variable is a number, a lookup in between makes it categorical. Numbers that float32 cannot hold
apart are categorical themselves.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch

from rasplens.compile import ir, rasp
from rasplens.compile.analysis.domains import Averaged
from rasplens.compile.errors import CompileError
from rasplens.compile.frontend.encodings import AS_WRITTEN, Encodings
from rasplens.compile.frontend.means import (
    is_mean_alone,
    mean_in_parts,
    mean_of_numbers,
    number_or,
)
from rasplens.compile.frontend.selector_formula import (
    And,
    Atom,
    Formula,
    conjunction,
    conjuncts,
    holds,
    negation,
    ordered,
    sources,
    together,
)
from rasplens.compile.ir import Apply, Graph, LoweredSelector, LoweredVariable, SelectorOp, VariableOp
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.interpreter import expressions, linear_form
from rasplens.compile.rasp.values import as_number, canonical, plain


def build_graph(program: rasp.SOp, encodings: Encodings = AS_WRITTEN) -> Graph:
    """The graph of a program; shared expressions become one node.

    Args:
        program: The s-op to compute.
        encodings: How s-ops are held, where that is not as they say.

    Raises:
        CompileError: If an expression is of no kind that can be compiled.
    """
    made_of = encodings.made_of
    builder = _Builder(made_of, encodings.apart - made_of.keys())
    for expr in (rasp.tokens, *expressions(program)):  # no recursion: programs may be deeper than Python's stack
        if isinstance(expr, rasp.SOp):
            builder.lower(expr)
    output = builder.lower(program)
    return Graph(tuple(builder.nodes), output, builder.lowered)


@dataclass
class _Builder:
    """The nodes so far, and which expressions they stand for."""

    made_of: Mapping[int, Averaged]
    apart: Collection[int]
    nodes: list[LoweredVariable | LoweredSelector] = field(default_factory=list)
    lowered: dict[int, int] = field(default_factory=dict)
    casts: dict[tuple[int, Encoding], int] = field(default_factory=dict)
    number_classes: dict[int, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    pairs: dict[tuple[int, int], int] = field(default_factory=dict)
    formulas: dict[int, Formula] = field(default_factory=dict)
    used_names: dict[str, int] = field(default_factory=dict)
    kept_alive: list[rasp.RASPExpr] = field(default_factory=list)

    def lower(self, expr: rasp.RASPExpr) -> int:
        """The node of an expression, made on first sight."""
        if id(expr) not in self.lowered:
            self.lowered[id(expr)] = _lower_apart(expr, self) if id(expr) in self.apart else _lower(expr, self)
            self.kept_alive.append(expr)  # so that no later expression can take over its id
        return self.lowered[id(expr)]

    def formula(self, selector: rasp.Selector) -> Formula:
        """Return a selector's formula, made on first sight; its parts come first, without recursion."""
        waiting = expressions(selector) if id(selector) not in self.formulas else []
        for expr in waiting:
            if isinstance(expr, rasp.Selector) and id(expr) not in self.formulas:
                self.formulas[id(expr)] = _formula(expr, self)
                self.kept_alive.append(expr)
        return self.formulas[id(selector)]

    def variable(
        self, op: VariableOp, inputs: tuple[int, ...], expr: rasp.SOp, encoding: Encoding | None = None
    ) -> int:
        """A new variable, encoded as its expression says or as given."""
        return self.append(LoweredVariable(inputs, self.unique(expr.name), expr, encoding or expr.encoding, op))

    def selector(self, op: SelectorOp, inputs: tuple[int, ...], expr: rasp.Selector) -> int:
        """A new selector."""
        return self.append(LoweredSelector(inputs, self.unique(expr.name), expr, op))

    def encoding(self, node: int) -> Encoding:
        """The encoding of the variable with an id."""
        found = self.nodes[node]
        if not isinstance(found, LoweredVariable):
            raise TypeError(f"{found.name!r} is a selector where a variable is needed")
        return found.encoding

    def cast(self, node: int, encoding: Encoding, expr: rasp.SOp | None = None) -> int:
        """The variable in the given encoding: itself, or a lookup from it, made for an expression."""
        source = self.nodes[node]
        if self.encoding(node) is encoding:
            return node
        if (node, encoding) not in self.casts:
            name = self.unique(f"{source.name} as {encoding.value}")
            cast = LoweredVariable(
                (node,), name, source.expr if expr is None else expr, encoding, Apply(_identity)
            )
            self.casts[node, encoding] = self.append(cast)
        return self.casts[node, encoding]

    def categorical(self, expr: rasp.RASPExpr) -> int:
        """The node of an expression with one direction per value."""
        return self.cast(self.lower(expr), Encoding.CATEGORICAL)

    def number_class(self, expr: rasp.SOp) -> int:
        """The node of an expression of numbers with one direction per number: True is 1, and 1.0 is."""
        source = self.categorical(expr)
        if source not in self.number_classes:
            name = self.unique(f"{self.nodes[source].name} as numbers")
            cast = LoweredVariable((source,), name, expr, Encoding.CATEGORICAL, Apply(as_number))
            self.number_classes[source] = self.append(cast)
        return self.number_classes[source]

    def read_as_numbers(self, expr: rasp.SOp) -> int:
        """The node of an expression as a number, 0 where it is something else."""
        source = self.lower(expr)
        if self.encoding(source) is Encoding.NUMERICAL:
            return source
        if source not in self.numbers:
            name = self.unique(f"{self.nodes[source].name} as numbers or 0")
            cast = LoweredVariable((source,), name, expr, Encoding.NUMERICAL, Apply(number_or(0)))
            self.numbers[source] = self.append(cast)
        return self.numbers[source]

    def append(self, node: LoweredVariable | LoweredSelector) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def unique(self, name: str) -> str:
        count = self.used_names.get(name, 0) + 1
        self.used_names[name] = count
        return name if count == 1 else self.unique(f"{name} ({count})")


_EVERYTHING = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)


def _identity(value: Value) -> Value:
    return value


@singledispatch
def _lower(expr: rasp.RASPExpr, builder: _Builder) -> int:
    raise CompileError(f"{expr!r} cannot be compiled.", expr)


@_lower.register
def _(expr: rasp.TokensType, builder: _Builder) -> int:
    return _primitive(ir.Tokens(), rasp.tokens, expr, builder)


@_lower.register
def _(expr: rasp.IndicesType, builder: _Builder) -> int:
    return _primitive(ir.Indices(), rasp.indices, expr, builder)


def _primitive(op: VariableOp, plain: rasp.SOp, expr: rasp.SOp, builder: _Builder) -> int:
    """Tokens and indices are embedded one direction per value; an annotated copy is a lookup from that."""
    if expr is plain:
        return builder.variable(op, (), expr)
    source = builder.lower(plain)
    if expr.encoding is Encoding.CATEGORICAL:
        return source
    return builder.cast(source, expr.encoding, expr)


@_lower.register
def _(expr: rasp.LengthType, builder: _Builder) -> int:
    return _width(expr, _EVERYTHING, builder)


@_lower.register
def _(expr: rasp.Full, builder: _Builder) -> int:
    fill = expr.fill
    return builder.variable(Apply(lambda token: fill), (builder.lower(rasp.tokens),), expr)


@_lower.register
def _(expr: rasp.ConstantSOp, builder: _Builder) -> int:
    values = expr.value
    read = Apply(lambda index: values[index] if index < len(values) else None)
    return builder.variable(read, (builder.lower(rasp.indices),), expr)


@_lower.register
def _(expr: rasp.Map, builder: _Builder) -> int:
    return builder.variable(Apply(expr.f), (builder.lower(expr.inner),), expr)


@_lower.register
def _(expr: rasp.SequenceMap, builder: _Builder) -> int:
    return builder.variable(Apply(expr.f), (builder.categorical(expr.fst), builder.categorical(expr.snd)), expr)


@_lower.register
def _(expr: rasp.LinearSequenceMap, builder: _Builder) -> int:
    if expr.encoding is Encoding.CATEGORICAL:
        inputs = builder.categorical(expr.fst), builder.categorical(expr.snd)
        return builder.variable(Apply(expr.f), inputs, expr)
    read = builder.read_as_numbers if id(expr) in builder.made_of else builder.lower
    inputs = read(expr.fst), read(expr.snd)
    return builder.variable(ir.Linear(expr.fst_fac, expr.snd_fac), inputs, expr)


@_lower.register
def _(expr: rasp.Where, builder: _Builder) -> int:
    branch = builder.read_as_numbers if id(expr) in builder.made_of else builder.lower
    branch = builder.categorical if expr.encoding is Encoding.CATEGORICAL else branch
    inputs = builder.categorical(expr.condition), branch(expr.then), branch(expr.otherwise)
    return builder.variable(ir.Where(), inputs, expr)


@_lower.register
def _(expr: rasp.SelectorWidth, builder: _Builder) -> int:
    return _width(expr, expr.selector, builder)


def _width(expr: rasp.SOp, selector: rasp.Selector, builder: _Builder) -> int:
    counted = _conjunction(builder.formula(selector), selector, builder)
    on_bos = rasp.numerical(expr).named(f"{expr.name} (attention on BOS)")
    of_length = isinstance(expr, rasp.LengthType)
    attended = builder.variable(ir.BosAttention(of_length), (counted,), on_bos)
    return builder.variable(Apply(_width_of_attention), (attended,), expr)


def _width_of_attention(on_bos: float) -> int:
    return round(1 / on_bos) - 1


@_lower.register
def _(expr: rasp.Aggregate, builder: _Builder) -> int:
    selector, values = builder.lower(expr.selector), builder.lower(expr.sop)
    averaged = builder.made_of.get(id(expr))
    if expr.encoding is Encoding.NUMERICAL and averaged is not None:
        return builder.lower(mean_of_numbers(expr, averaged))
    mixes = builder.encoding(values) is Encoding.NUMERICAL or averaged is not None
    if not mixes or expr.encoding is Encoding.NUMERICAL:
        return builder.variable(ir.Aggregate(expr.default), (selector, values), expr)
    averaged = averaged or Averaged((), ())
    if not is_mean_alone(averaged, expr.default):
        return builder.lower(mean_in_parts(expr, averaged))
    mean = rasp.numerical(expr).named(f"{expr.name} (mean)")
    return builder.cast(
        builder.variable(ir.Aggregate(expr.default), (selector, values), mean), Encoding.CATEGORICAL
    )


@singledispatch
def _lower_apart(expr: rasp.RASPExpr, builder: _Builder) -> int:
    """The node of a numerical s-op with one direction per number."""
    node = builder.nodes[_lower(expr, builder)]
    if not isinstance(node, LoweredVariable) or not isinstance(node.op, Apply):
        raise AssertionError(f"{node.name!r} cannot be held apart")
    function = node.op.function
    exactly = Apply(lambda *arguments: as_number(plain(function(*arguments))))
    builder.nodes[-1] = replace(node, op=exactly, encoding=Encoding.CATEGORICAL)
    return len(builder.nodes) - 1


@_lower_apart.register
def _(expr: rasp.TokensType, builder: _Builder) -> int:
    return builder.number_class(rasp.tokens)


@_lower_apart.register
def _(expr: rasp.IndicesType, builder: _Builder) -> int:
    return builder.number_class(rasp.indices)


@_lower_apart.register
def _(expr: rasp.LinearSequenceMap, builder: _Builder) -> int:
    inputs = builder.number_class(expr.fst), builder.number_class(expr.snd)
    return builder.variable(Apply(linear_form(expr)), inputs, expr, Encoding.CATEGORICAL)


@_lower_apart.register
def _(expr: rasp.Where, builder: _Builder) -> int:
    condition = builder.categorical(expr.condition)
    branches = builder.number_class(expr.then), builder.number_class(expr.otherwise)
    return builder.variable(ir.Where(), (condition, *branches), expr, Encoding.CATEGORICAL)


@_lower_apart.register
def _(expr: rasp.Aggregate, builder: _Builder) -> int:
    inputs = builder.lower(expr.selector), builder.number_class(expr.sop)
    return builder.variable(ir.Aggregate(as_number(expr.default)), inputs, expr, Encoding.CATEGORICAL)


@_lower.register
def _(expr: rasp.SelectBest, builder: _Builder) -> int:
    matched = builder.categorical(expr.keys), builder.categorical(expr.queries)
    if isinstance(expr.score, rasp.SOp):
        return builder.selector(ir.SelectBest(expr.predicate), (*matched, builder.categorical(expr.score)), expr)
    return builder.selector(ir.SelectBestMatch(expr.predicate, expr.score), matched, expr)


@_lower.register
def _(expr: rasp.Selector, builder: _Builder) -> int:
    return _conjunction(builder.formula(expr), expr, builder)


def _conjunction(formula: Formula, expr: rasp.Selector, builder: _Builder) -> int:
    """The selector of a formula: levels of attention add up, so `and` costs no more than its parts."""
    matches = [_match(part, expr, builder) for part in together(conjuncts(formula))]
    return matches[0] if len(matches) == 1 else builder.selector(ir.Conjunction(), tuple(matches), expr)


def _match(formula: Formula, expr: rasp.Selector, builder: _Builder) -> int:
    """One predicate of one key and one query variable; of several at once, through their combinations."""
    parts = ordered(formula)
    keys, queries = (list(dict.fromkeys(side)) for side in zip(*sources(parts), strict=True))
    key, query = _combination(keys, expr, builder), _combination(queries, expr, builder)
    if isinstance(formula, Atom):
        return builder.selector(ir.Select(formula.predicate), (key, query), expr)

    def predicate(key_value: Value, query_value: Value) -> bool:
        found = dict(zip(keys, _components(key_value, keys), strict=True))
        asked = dict(zip(queries, _components(query_value, queries), strict=True))
        return holds(parts, found, asked)

    return builder.selector(ir.Select(predicate, takes_none=True), (key, query), expr)


def _combination(parts: list[int], expr: rasp.Selector, builder: _Builder) -> int:
    """A variable whose values are the tuples of the values of several, None among them."""
    whole = parts[0]
    for part in parts[1:]:
        if (whole, part) not in builder.pairs:
            is_first = whole == parts[0]
            op = Apply((lambda x, y: (x, y)) if is_first else (lambda x, y: (*x, y)), takes_none=True)
            names = [builder.nodes[i].name for i in (whole, part)]
            name = builder.unique(" × ".join(names))
            pair = LoweredVariable((whole, part), name, expr, Encoding.CATEGORICAL, op)
            builder.pairs[whole, part] = builder.append(pair)
        whole = builder.pairs[whole, part]
    return whole


def _components(value: Value, sources: list[int]) -> tuple[Value, ...]:
    return (value,) if len(sources) == 1 else value


@singledispatch
def _formula(expr: rasp.Selector, builder: _Builder) -> Formula:
    raise CompileError(f"{expr!r} cannot be compiled.", expr)


@_formula.register
def _(expr: rasp.Select, builder: _Builder) -> Formula:
    return Atom(builder.categorical(expr.keys), builder.categorical(expr.queries), expr.predicate)


@_formula.register
def _(expr: rasp.SelectBest, builder: _Builder) -> Formula:
    """The keys that satisfy the predicate and have the score that is best for the query.

    A head can select those directly, but not count or restrict them: then the best score is gathered
    first, and compared.
    """
    if not isinstance(expr.score, rasp.SOp):
        return _as_good_as_the_best(expr, expr.score, builder)
    ranked = rasp.Map(canonical, expr.score).named(f"{expr.score.name} (as a score)")
    scores = builder.categorical(ranked)
    best = rasp.Aggregate(expr, ranked).named(f"{expr.score.name} of {expr.name}")
    highest = builder.variable(ir.Aggregate(None), (builder.lower(expr), scores), best)
    predicate = Atom(builder.categorical(expr.keys), builder.categorical(expr.queries), expr.predicate)
    return And((predicate, Atom(scores, highest, rasp.Comparison.EQ)))


def _as_good_as_the_best(
    expr: rasp.SelectBest, score: Callable[[Value, Value], Value], builder: _Builder
) -> Formula:
    """The keys that score as high for the query as one best key does, which is gathered first.

    Where keys of several values are best, those of one value are gathered: the last by its `repr`.
    """

    def ranked(key: Value, query: Value) -> Value:
        found = score(key, query)
        return None if found is None else (found, repr(key))

    def is_best(key: Value, asked: tuple[Value, Value]) -> bool:
        query, best = asked
        if not (expr.predicate(key, query) and expr.predicate(best, query)):
            return False
        found = score(key, query)
        return found is not None and bool(found == score(best, query))

    one = rasp.SelectBest(expr.keys, expr.queries, expr.predicate, ranked)
    best = rasp.Aggregate(one, expr.keys).named(f"{expr.keys.name} of {expr.name}")
    asked = rasp.SequenceMap(lambda query, key: (query, key), expr.queries, best)
    return Atom(builder.categorical(expr.keys), builder.categorical(asked), is_best)


@_formula.register
def _(expr: rasp.ConstantSelector, builder: _Builder) -> Formula:
    rows = expr.value

    def selected(key: int, query: int) -> bool:
        return query < len(rows) and key < len(rows[query]) and rows[query][key]

    indices = builder.lower(rasp.indices)
    return Atom(indices, indices, selected)


@_formula.register
def _(expr: rasp.SelectorNot, builder: _Builder) -> Formula:
    return negation(builder.formula(expr.inner))


@_formula.register
def _(expr: rasp.SelectorAnd, builder: _Builder) -> Formula:
    return conjunction([builder.formula(expr.fst), builder.formula(expr.snd)])


@_formula.register
def _(expr: rasp.SelectorOr, builder: _Builder) -> Formula:
    return negation(conjunction([negation(builder.formula(part)) for part in (expr.fst, expr.snd)]))
