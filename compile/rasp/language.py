"""The RASP language, under Tracr's names: a Tracr program runs after changing its import.

An s-op is a function from a sequence of tokens to a sequence of values, one per position; a selector
is a function from a sequence to a boolean matrix `[query, key]`. Programs are immutable expression
graphs; `x == 1` builds an s-op (as in Tracr), so hashing is by identity. Two additions to Tracr's
language: `SelectBest` and `Where`. One difference: `None`, the undefined value, never reaches a
function or a predicate: what depends on it is undefined, and it is selected by nothing.

Source: Weiss et al. 2021, "Thinking Like Transformers"; Lindner et al. 2023, "Tracr", section 2.2.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar, get_origin

from rasplens.errors import RaspLensError

Value = Any
"""None (undefined), bool, int, float, str or a tuple of those."""

Predicate = Callable[[Value, Value], bool]
"""A function of (key, query)."""


class Encoding(Enum):
    """How the residual stream holds an s-op: one direction per value, or one direction in all."""

    CATEGORICAL = "categorical"
    NUMERICAL = "numerical"


class ComparisonPredicate(Enum):
    """The usual predicates of `Select`, called with (key, query)."""

    EQ = "=="
    LT = "<"
    LEQ = "<="
    GT = ">"
    GEQ = ">="
    NEQ = "!="
    TRUE = "True"
    FALSE = "False"

    def __call__(self, key: Value, query: Value) -> bool:
        """Whether the comparison holds."""
        return _COMPARISONS[self](key, query)


Comparison = ComparisonPredicate
"""The predicates under Tracr's name; `rasplens.compare.Comparison` is the result of a comparison of models."""

_COMPARISONS: Mapping[ComparisonPredicate, Predicate] = {
    Comparison.EQ: operator.eq,
    Comparison.LT: operator.lt,
    Comparison.LEQ: operator.le,
    Comparison.GT: operator.gt,
    Comparison.GEQ: operator.ge,
    Comparison.NEQ: operator.ne,
    Comparison.TRUE: lambda key, query: True,
    Comparison.FALSE: lambda key, query: False,
}


ExprT = TypeVar("ExprT", bound="RASPExpr")
SOpT = TypeVar("SOpT", bound="SOp")


@dataclass(frozen=True, eq=False, repr=False)
class RASPExpr:
    """A node of a program: an s-op or a selector. What its arguments must be is what the class says they are.

    Attributes:
        annotations: `name`, `encoding` and `about` (what it computes, in words), where they were set; see
            `annotate`.

    Raises:
        TypeError: If an argument is something else.
    """

    annotations: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "annotations", MappingProxyType(dict(self.annotations)))
        for argument in fields(self):
            _check_argument(self, argument)

    @property
    def name(self) -> str:
        """The name it was given, else the kind of expression it is."""
        return self.annotations.get("name") or _default_name(type(self))

    @cached_property
    def children(self) -> tuple["RASPExpr", ...]:
        """The expressions that this one reads, in the order of its arguments."""
        arguments = (getattr(self, f.name) for f in fields(self))
        return tuple(argument for argument in arguments if isinstance(argument, RASPExpr))

    def named(self: ExprT, name: str) -> ExprT:
        """Return the expression under a name for display."""
        return annotate(self, name=name)

    def annotated(self: ExprT, **annotations: Any) -> ExprT:
        """Return the expression with further annotations."""
        return annotate(self, **annotations)

    def __call__(self, tokens: Sequence[Value]) -> list[Any]:
        """Return the values of the expression on a sequence, every position seeing every other."""
        from rasplens.compile.rasp.interpreter import run

        return run(self, tokens)

    def __repr__(self) -> str:
        """Its kind and the names of what it reads; never the whole program, whose size may explode."""
        kind = type(self).__name__
        given = f" {self.name!r}" if "name" in self.annotations else ""
        reads = ", ".join(child.name for child in self.children)
        return f"<{kind}{given} of {reads}>" if reads else f"<{kind}{given}>"

    def _repr_html_(self) -> str:
        from rasplens.compile.rasp.program_view import program_view

        return program_view(self)


def _check_argument(expr: RASPExpr, argument: Field[Any]) -> None:
    """Raises where an argument is not what its class says: an s-op, a selector, or a Python function."""
    given, name, kind = getattr(expr, argument.name), argument.name, type(expr).__name__
    if argument.type is SOp and not isinstance(given, SOp):
        raise TypeError(f"`{name}` of {kind} must be an s-op; got {given!r}. Wrap a constant in Full(...).")
    if argument.type is Selector and not isinstance(given, Selector):
        raise TypeError(f"`{name}` of {kind} must be a selector; got {given!r}.")
    if get_origin(argument.type) is Callable and (isinstance(given, RASPExpr) or not callable(given)):
        raise TypeError(f"{kind} needs a Python function of values; got {given!r}.")


def annotate(expr: ExprT, **annotations: Any) -> ExprT:
    """A copy of an expression with annotations added; what is built on the original keeps the original.

    Raises:
        TypeError: If `encoding` is no `Encoding`, or `name` no text.
        RaspLensError: If no file or terminal could hold the name.
    """
    if not isinstance(annotations.get("encoding", Encoding.CATEGORICAL), Encoding):
        raise TypeError(f"`encoding` must be an Encoding; got {annotations['encoding']!r}. Use numerical(...).")
    name = annotations.get("name", "")
    if not isinstance(name, str):
        raise TypeError(f"A name must be a str; got {name!r}.")
    if any("\ud800" <= character <= "\udfff" for character in name):
        raise RaspLensError(f"A name must not contain a lone surrogate; got {name!r}. Choose another name.")
    return replace(expr, annotations={**expr.annotations, **annotations})


@dataclass(frozen=True)
class _WithConstant:
    """An operator of which one side is a constant: a function of the other."""

    function: Callable[[Value, Value], Value]
    constant: Value
    is_left: bool

    def __call__(self, x: Value) -> Value:
        return self.function(self.constant, x) if self.is_left else self.function(x, self.constant)


def formula(function: Callable[..., Value], reads: Sequence[str]) -> str | None:
    """How a person would have written a map that an operator built; None for other functions.

    A function that is no operator of Python says it by an attribute `written`.
    """
    if isinstance(function, _WithConstant):
        reads = [repr(function.constant), *reads] if function.is_left else [*reads, repr(function.constant)]
        function = function.function
    by_itself = getattr(function, "written", None)
    written = next((written for built, written in _WRITTEN if built is function), by_itself)
    return written.format(*reads) if isinstance(written, str) else None


def elementwise(function: Callable[[Value, Value], Value], symbol: str, left: Value, right: Value) -> "SOp":
    """A function of two s-ops, or of an s-op and a constant, at every position; its name has the symbol."""
    name = _operator_name(left, symbol, right)
    if isinstance(left, SOp) and isinstance(right, SOp):
        return SequenceMap(function, left, right, annotations=name)
    if isinstance(left, SOp):
        return Map(_WithConstant(function, right, is_left=False), left, annotations=name)
    return Map(_WithConstant(function, left, is_left=True), right, annotations=name)


def _operator(function: Callable[[Value, Value], Value], symbol: str) -> Callable[..., "SOp"]:
    """The method for `s-op <symbol> other`, where other is an s-op or a constant."""

    def method(self: "SOp", other: Value) -> "SOp":
        return elementwise(function, symbol, self, other)

    return method


def _reflected(function: Callable[[Value, Value], Value], symbol: str) -> Callable[..., "SOp"]:
    """The method for `constant <symbol> s-op`."""

    def method(self: "SOp", other: Value) -> "SOp":
        return elementwise(function, symbol, other, self)

    return method


LONGEST_OPERATOR_NAME = 40
"""Expressions built by operators are named by their formula up to this many characters."""


def _constant_name(value: Value) -> str:
    """A constant as text. Python writes no whole number of more than some thousand digits."""
    try:
        return repr(value)
    except ValueError:
        return f"<{type(value).__name__} of many digits>"


def _operator_name(left: Value, symbol: str, right: Value) -> Mapping[str, str]:
    first, second = (part.name if isinstance(part, SOp) else _constant_name(part) for part in (left, right))
    formula = f"({first} {symbol} {second})"
    return {"name": formula} if len(formula) <= LONGEST_OPERATOR_NAME else {}


def _and(x: Value, y: Value) -> Value:
    return x and y


def _or(x: Value, y: Value) -> Value:
    return x or y


_WRITTEN = (
    (operator.add, "({} + {})"), (operator.sub, "({} - {})"), (operator.mul, "({} * {})"),
    (operator.truediv, "({} / {})"), (operator.floordiv, "({} // {})"), (operator.mod, "({} % {})"),
    (_and, "({} & {})"), (_or, "({} | {})"), (operator.lt, "({} < {})"), (operator.le, "({} <= {})"),
    (operator.gt, "({} > {})"), (operator.ge, "({} >= {})"), (operator.eq, "({} == {})"),
    (operator.ne, "({} != {})"), (operator.not_, "~{}"), (operator.neg, "-{}"), (abs, "abs({})"),
)  # fmt: skip
"""The functions that operators build maps of, each as it is written."""


@dataclass(frozen=True, eq=False, repr=False)
class SOp(RASPExpr):
    """A sequence operation: one value per position. Python's operators build new ones elementwise."""

    __hash__ = object.__hash__

    __add__, __radd__ = _operator(operator.add, "+"), _reflected(operator.add, "+")
    __sub__, __rsub__ = _operator(operator.sub, "-"), _reflected(operator.sub, "-")
    __mul__, __rmul__ = _operator(operator.mul, "*"), _reflected(operator.mul, "*")
    __truediv__, __rtruediv__ = _operator(operator.truediv, "/"), _reflected(operator.truediv, "/")
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv, "//"), _reflected(operator.floordiv, "//")
    __mod__, __rmod__ = _operator(operator.mod, "%"), _reflected(operator.mod, "%")
    __and__, __rand__ = _operator(_and, "and"), _reflected(_and, "and")
    __or__, __ror__ = _operator(_or, "or"), _reflected(_or, "or")
    __lt__, __le__ = _operator(operator.lt, "<"), _operator(operator.le, "<=")
    __gt__, __ge__ = _operator(operator.gt, ">"), _operator(operator.ge, ">=")
    __eq__ = _operator(operator.eq, "==")  # type: ignore[assignment]
    __ne__ = _operator(operator.ne, "!=")  # type: ignore[assignment]

    def __invert__(self) -> "SOp":
        return Map(operator.not_, self, annotations={"name": f"(not {self.name})"})

    def __neg__(self) -> "SOp":
        return Map(operator.neg, self, annotations={"name": f"(-{self.name})"})

    def __abs__(self) -> "SOp":
        return Map(abs, self, annotations={"name": f"(abs {self.name})"})

    def __bool__(self) -> bool:
        """Refused: `x == y` builds an s-op, which is neither true nor false.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            f"The s-op {self.name!r} has no truth value. Use &, | and ~ instead of and, or and not, "
            "and `is` to ask whether two expressions are the same."
        )

    @property
    def encoding(self) -> Encoding:
        """How the compiled model is to hold it; categorical unless annotated."""
        return self.annotations.get("encoding", Encoding.CATEGORICAL)


@dataclass(frozen=True, eq=False, repr=False)
class TokensType(SOp):
    """The input tokens."""


@dataclass(frozen=True, eq=False, repr=False)
class IndicesType(SOp):
    """The position of each token, from 0."""


@dataclass(frozen=True, eq=False, repr=False)
class LengthType(SOp):
    """The length of the sequence, at every position."""


@dataclass(frozen=True, eq=False, repr=False)
class Map(SOp):
    """`f` of every value."""

    f: Callable[[Value], Value]
    inner: SOp


@dataclass(frozen=True, eq=False, repr=False)
class SequenceMap(SOp):
    """`f` of the two values at every position."""

    f: Callable[[Value, Value], Value]
    fst: SOp
    snd: SOp


@dataclass(frozen=True, eq=False, repr=False)
class LinearSequenceMap(SOp):
    """`fst_fac · fst + snd_fac · snd` at every position."""

    fst: SOp
    snd: SOp
    fst_fac: float
    snd_fac: float

    def f(self, x: Value, y: Value) -> Value:
        """The linear form itself."""
        return self.fst_fac * x + self.snd_fac * y


@dataclass(frozen=True, eq=False, repr=False)
class Where(SOp):
    """`then` where the condition holds, `otherwise` where it does not (an addition to Tracr's RASP).

    It is undefined where the condition is, or where the branch that it takes is; the other may be. A constant
    branch becomes `Full` of it.
    """

    condition: SOp
    then: SOp
    otherwise: SOp

    def __post_init__(self) -> None:
        for branch in ("then", "otherwise"):
            if isinstance(getattr(self, branch), bool | int | float | str | tuple):
                object.__setattr__(self, branch, Full(getattr(self, branch)))
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Full(SOp):
    """An s-op with one value at every position."""

    fill: Value


@dataclass(frozen=True, eq=False, repr=False)
class ConstantSOp(SOp):
    """Given values, whatever the tokens; without `check_length`, cut or filled up with None."""

    value: Sequence[Value]
    check_length: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "value", tuple(self.value))


@dataclass(frozen=True, eq=False, repr=False)
class Selector(RASPExpr):
    """A boolean matrix `[query, key]`; `&`, `|` and `~` combine them."""

    def __and__(self, other: "Selector") -> "Selector":
        return SelectorAnd(self, other)

    def __or__(self, other: "Selector") -> "Selector":
        return SelectorOr(self, other)

    def __invert__(self) -> "Selector":
        return SelectorNot(self)


@dataclass(frozen=True, eq=False, repr=False)
class Select(Selector):
    """Selects the keys for which `predicate(key, query)` holds."""

    keys: SOp
    queries: SOp
    predicate: Predicate


@dataclass(frozen=True, eq=False, repr=False)
class SelectBest(Selector):
    """Selects, of the keys for which the predicate holds, those whose `score` is highest.

    `score` is an s-op, evaluated at the key, or a function of (key, query), called where the predicate holds.
    Keys that tie are all selected, and keys without a score never; scores that are tuples rank by their first
    parts, then by their second ones. An addition to Tracr's RASP: with it, "the latest earlier occurrence", "the
    smallest larger value" and "the nearest match" are one attention head, as they are in trained models.
    """

    keys: SOp
    queries: SOp
    predicate: Predicate
    score: SOp | Callable[[Value, Value], Value]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.score, SOp) and (isinstance(self.score, RASPExpr) or not callable(self.score)):
            raise TypeError(
                f"`score` of SelectBest must be an s-op or a Python function of (key, query); got {self.score!r}."
            )


@dataclass(frozen=True, eq=False, repr=False)
class ConstantSelector(Selector):
    """A given matrix `[query, key]`, whatever the tokens; without `check_length`, cut or filled up with False."""

    value: Sequence[Sequence[bool]]
    check_length: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "value", tuple(tuple(bool(cell) for cell in row) for row in self.value))


@dataclass(frozen=True, eq=False, repr=False)
class SelectorAnd(Selector):
    """Selects what both select."""

    fst: Selector
    snd: Selector


@dataclass(frozen=True, eq=False, repr=False)
class SelectorOr(Selector):
    """Selects what either selects."""

    fst: Selector
    snd: Selector


@dataclass(frozen=True, eq=False, repr=False)
class SelectorNot(Selector):
    """Selects what the other does not."""

    inner: Selector


@dataclass(frozen=True, eq=False, repr=False)
class SelectorWidth(SOp):
    """How many keys are selected, for each query."""

    selector: Selector


@dataclass(frozen=True, eq=False, repr=False)
class Aggregate(SOp):
    """The mean of `sop` over the selected keys; `default` where nothing is selected.

    Values that are all equal are their own mean, whatever their type; different values must be numbers.
    """

    selector: Selector
    sop: SOp
    default: Value = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.default, bool | int | float | str | tuple | None):
            kind = type(self.default).__name__
            raise TypeError(f"`default` of Aggregate must be None, bool, int, float, str or a tuple; got {kind}.")
        if _has_nan(self.default):
            raise ValueError(
                f"`default` of Aggregate must not contain nan; got {self.default!r}. Use None for undefined."
            )


def _has_nan(value: Value) -> bool:
    return any(map(_has_nan, value)) if isinstance(value, tuple) else bool(value != value)


tokens = TokensType()
indices = IndicesType()
length = LengthType()

PRIMITIVES: Mapping[str, SOp] = {"TokensType": tokens, "IndicesType": indices, "LengthType": length}
"""The s-ops that exist only once, by the name of their class, as in Tracr."""


def numerical(sop: SOpT) -> SOpT:
    """The s-op, to be held as a number in one direction of the residual stream."""
    return annotate(sop, encoding=Encoding.NUMERICAL)


def categorical(sop: SOpT) -> SOpT:
    """The s-op, to be held with one direction of the residual stream per value."""
    return annotate(sop, encoding=Encoding.CATEGORICAL)


def causal(sop: SOpT) -> SOpT:
    """The s-op, meant for models that see only the past: compiling it causally changes nothing to warn of."""
    return annotate(sop, causal=True)


def is_numerical(sop: SOp) -> bool:
    """Whether the s-op is to be held as a number."""
    return sop.encoding is Encoding.NUMERICAL


def is_categorical(sop: SOp) -> bool:
    """Whether the s-op is to be held with one direction per value."""
    return sop.encoding is Encoding.CATEGORICAL


def _default_name(kind: type) -> str:
    """The class in Tracr's spelling: `SequenceMap` is "sequence_map", `TokensType` is "tokens"."""
    name = kind.__name__.removesuffix("Type").replace("SOp", "Sop")
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
