"""The meaning of RASP: `run` evaluates a program on one sequence, directly from the definitions.

This is the ground truth that compiled models are verified against, so it is written to be read, not to
be fast. Every expression is evaluated once per call, however often it is shared.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial, singledispatch
from typing import Any

import numpy as np

from rasplens.compile import rasp
from rasplens.compile.errors import UndefinedValue
from rasplens.compile.rasp.language import Encoding, Value
from rasplens.compile.rasp.values import as_number, exact, plain, value_key
from rasplens.errors import RaspLensError

Matrix = list[list[bool]]


def run(
    program: rasp.RASPExpr,
    tokens: Sequence[Value],
    *,
    causal: bool = False,
    mask: np.ndarray | None = None,
    set: Mapping[str, Sequence[Value]] | None = None,
) -> list[Any]:
    """The values of a program on one sequence.

    Args:
        program: An s-op (giving one value per position) or a selector (giving rows of booleans).
        tokens: The sequence.
        causal: Whether selectors see only the position itself and the ones before it.
        mask: Boolean `[query, key]`, at least as long as the sequence: what selectors may see at all.
        set: Interventions: values, one per position, that every s-op of the given name takes instead of
            its own; everything downstream is recomputed.

    Raises:
        UndefinedValue: If an aggregate mixes different values that are no numbers, or a function of the
            program raises.
        RaspLensError: If it is no program, or an intervention names no s-op of it or has the wrong length.
    """
    if not isinstance(program, rasp.SOp | rasp.Selector):
        raise RaspLensError(f"A program is an s-op or a selector; got {program!r}.")
    visible = visibility(len(tokens), causal, mask)
    evaluation = _Evaluation(list(tokens), visible, _interventions(program, len(tokens), set or {}))
    for expr in expressions(program, leaves=evaluation.interventions):
        evaluation.of(expr)
    return evaluation.rows(program) if isinstance(program, rasp.Selector) else evaluation.of(program)


def every_value(
    program: rasp.SOp, tokens: Sequence[Value], mask: np.ndarray
) -> list[tuple[rasp.RASPExpr, list[Any]]]:
    """The values of each expression of a program on one sequence; of a selector the rows.

    Args:
        program: The program.
        tokens: The sequence.
        mask: Boolean `[query, key]`, what selectors may see at all.

    Raises:
        UndefinedValue: As `run` does.
    """
    evaluation = _Evaluation(list(tokens), visibility(len(tokens), False, mask), {})
    return [
        (expr, evaluation.rows(expr) if isinstance(expr, rasp.Selector) else evaluation.of(expr))
        for expr in expressions(program)
    ]


def of_length(expr: rasp.RASPExpr, length: int) -> list[Any]:
    """The values, or the rows, of an expression that reads nothing, on every sequence of a length.

    Raises:
        UndefinedValue: As `run` does.
    """
    return _Evaluation([0] * length, visibility(length, False, None), {}).of(expr)


def visibility(length: int, causal: bool, mask: np.ndarray | None) -> np.ndarray:
    """Which keys each query of a sequence can see: boolean `[query, key]`."""
    visible = np.tri(length, dtype=bool) if causal else np.ones((length, length), dtype=bool)
    if mask is None:
        return visible
    if mask.ndim != 2 or mask.shape[0] != mask.shape[1] or mask.shape[0] < length:
        raise RaspLensError(f"mask must be [query, key] for {length} positions; got shape {mask.shape}.")
    return visible & mask[:length, :length]


def expressions(program: rasp.RASPExpr, leaves: Container[int] = ()) -> list[rasp.RASPExpr]:
    """Every expression of a program once, each after what it reads, in order of first appearance.

    Args:
        program: The program.
        leaves: Ids of expressions whose inputs are left out.
    """
    ordered: list[rasp.RASPExpr] = []
    seen: set[int] = set()
    waiting: list[tuple[rasp.RASPExpr, bool]] = [(program, False)]
    while waiting:  # no recursion: programs may be deeper than Python's stack
        expr, children_are_done = waiting.pop()
        if children_are_done:
            ordered.append(expr)
        elif id(expr) not in seen:
            seen.add(id(expr))
            waiting.append((expr, True))
            children = () if id(expr) in leaves else expr.children
            waiting += [(child, False) for child in reversed(children)]
    return ordered


def mean(values: Sequence[Value]) -> Value:
    """The mean of at least one value: the value itself where all are equal, else of numbers.

    Means are computed exactly from what `exact` takes numbers for, and rounded once, so they do not depend on
    the order of the values; one that comes out whole is an int.

    Raises:
        UndefinedValue: If different values are not all numbers.
    """
    first = values[0]
    if all(value_key(value) == value_key(first) for value in values):
        return first
    if not all(isinstance(value, bool | int | float) for value in values):
        different = list({value_key(value): value for value in values}.values())
        raise UndefinedValue(f"the mean of {different} does not exist")
    if all(isinstance(value, int) for value in values):  # several times as fast as adding fractions
        return as_number(Fraction(sum(values), len(values)))
    return as_number(sum(map(exact, values), Fraction(0)) / len(values))


@dataclass
class _Evaluation:
    """One run: the sequence, what may be seen, and the values found so far."""

    tokens: list[Value]
    visible: np.ndarray
    interventions: Mapping[int, list[Value]]
    found: dict[int, list[Any]] = field(default_factory=dict)

    def of(self, expr: rasp.RASPExpr) -> list[Any]:
        if id(expr) not in self.found:
            fixed = self.interventions.get(id(expr))
            values = _evaluate(expr, self) if fixed is None else fixed
            is_numerical = isinstance(expr, rasp.SOp) and expr.encoding is Encoding.NUMERICAL
            self.found[id(expr)] = [as_number(value) for value in values] if is_numerical else values
        return self.found[id(expr)]

    def rows(self, selector: rasp.RASPExpr) -> Matrix:
        """A selector's matrix, as far as it may be seen."""
        seen = zip(self.of(selector), self.visible, strict=True)
        return [[bool(s and v) for s, v in zip(row, may, strict=True)] for row, may in seen]

    def apply(self, expr: rasp.SOp, function: Any, *inputs: list[Value]) -> list[Value]:
        """The function at every position where every input is defined."""
        results: list[Value] = []
        for position, values in enumerate(zip(*inputs, strict=True)):
            if any(value is None for value in values):
                results.append(None)
                continue
            try:
                results.append(plain(function(*values)))
            except Exception as error:
                raise UndefinedValue(
                    f"{expr.name!r} is undefined at position {position} of {self.tokens}: its function "
                    f"raised {type(error).__name__} on {', '.join(map(repr, values))} ({error})."
                ) from error
        return results


@singledispatch
def _evaluate(expr: rasp.RASPExpr, run: _Evaluation) -> list[Any]:
    raise TypeError(f"{expr!r} is not a RASP expression that can be evaluated.")


@_evaluate.register
def _(expr: rasp.TokensType, run: _Evaluation) -> list[Value]:
    return run.tokens


@_evaluate.register
def _(expr: rasp.IndicesType, run: _Evaluation) -> list[Value]:
    return list(range(len(run.tokens)))


@_evaluate.register
def _(expr: rasp.LengthType, run: _Evaluation) -> list[Value]:
    return [len(run.tokens)] * len(run.tokens)


@_evaluate.register
def _(expr: rasp.Full, run: _Evaluation) -> list[Value]:
    return [expr.fill] * len(run.tokens)


@_evaluate.register
def _(expr: rasp.ConstantSOp, run: _Evaluation) -> list[Value]:
    return _constant(expr, run, missing=None)


@_evaluate.register
def _(expr: rasp.Map, run: _Evaluation) -> list[Value]:
    return run.apply(expr, expr.f, run.of(expr.inner))


@_evaluate.register
def _(expr: rasp.SequenceMap, run: _Evaluation) -> list[Value]:
    return run.apply(expr, expr.f, run.of(expr.fst), run.of(expr.snd))


@_evaluate.register
def _(expr: rasp.LinearSequenceMap, run: _Evaluation) -> list[Value]:
    function = linear_form(expr) if expr.encoding is Encoding.NUMERICAL else expr.f
    return run.apply(expr, function, run.of(expr.fst), run.of(expr.snd))


def linear_form(expr: rasp.LinearSequenceMap) -> Callable[[Value, Value], Value]:
    """The linear form of two numbers, computed exactly from what `exact` takes them for, and rounded once."""
    fst_fac, snd_fac = exact(expr.fst_fac), exact(expr.snd_fac)
    return lambda x, y: as_number(fst_fac * exact(x) + snd_fac * exact(y))


@_evaluate.register
def _(expr: rasp.Where, run: _Evaluation) -> list[Value]:
    branches = zip(run.of(expr.condition), run.of(expr.then), run.of(expr.otherwise), strict=True)
    return [None if holds is None else (then if holds else otherwise) for holds, then, otherwise in branches]


@_evaluate.register
def _(expr: rasp.SelectorWidth, run: _Evaluation) -> list[Value]:
    return [sum(row) for row in run.rows(expr.selector)]


@_evaluate.register
def _(expr: rasp.Aggregate, run: _Evaluation) -> list[Value]:
    values = run.of(expr.sop)
    results: list[Value] = []
    for position, row in enumerate(run.rows(expr.selector)):
        selected = [value for value, is_selected in zip(values, row, strict=True) if is_selected]
        try:
            results.append(mean(selected) if selected else expr.default)
        except UndefinedValue as error:
            raise UndefinedValue(
                f"{expr.name!r} is undefined at position {position} of {run.tokens}: {error}."
            ) from None
    return results


@_evaluate.register
def _(expr: rasp.Select, run: _Evaluation) -> Matrix:
    return _matches(expr, run)


@_evaluate.register
def _(expr: rasp.SelectBest, run: _Evaluation) -> Matrix:
    rows = []
    for scores, visible in zip(_scores(expr, run), run.visible, strict=True):
        candidates = [v and s is not None for s, v in zip(scores, visible, strict=True)]
        best = best_score(expr, [s for s, c in zip(scores, candidates, strict=True) if c])
        rows.append([bool(c and s == best) for s, c in zip(scores, candidates, strict=True)])
    return rows


def _scores(expr: rasp.SelectBest, run: _Evaluation) -> list[list[Value]]:
    """The score of each key for each query, `[query][key]`; None where the predicate does not hold."""
    matches = _matches(expr, run)
    if isinstance(expr.score, rasp.SOp):
        scores = run.of(expr.score)
        return [[s if m else None for m, s in zip(row, scores, strict=True)] for row in matches]
    score = partial(_called, expr, "score", expr.score, run)
    pairs = [[(key, query) for key in run.of(expr.keys)] for query in run.of(expr.queries)]
    return [
        [score(*pair) if m else None for m, pair in zip(row, of_row, strict=True)]
        for row, of_row in zip(matches, pairs, strict=True)
    ]


def best_score(expr: rasp.SelectBest, scores: list[Value]) -> Value:
    """The highest of some scores, None of none.

    Raises:
        UndefinedValue: If they cannot be compared.
    """
    if any(score != score for score in scores):
        raise UndefinedValue(f"{expr.name!r} has the score nan, which cannot be ranked.")
    try:
        return max(scores, default=None)
    except TypeError as error:
        raise UndefinedValue(f"{expr.name!r} has scores that cannot be compared ({error}).") from error


@_evaluate.register
def _(expr: rasp.ConstantSelector, run: _Evaluation) -> Matrix:
    rows = _constant(expr, run, missing=())
    return [[bool(cell) for cell in _to_length(row, len(rows), missing=False)] for row in rows]


@_evaluate.register
def _(expr: rasp.SelectorAnd, run: _Evaluation) -> Matrix:
    return np.logical_and(run.of(expr.fst), run.of(expr.snd)).tolist()


@_evaluate.register
def _(expr: rasp.SelectorOr, run: _Evaluation) -> Matrix:
    return np.logical_or(run.of(expr.fst), run.of(expr.snd)).tolist()


@_evaluate.register
def _(expr: rasp.SelectorNot, run: _Evaluation) -> Matrix:
    return np.logical_not(run.of(expr.inner)).tolist()


def _matches(expr: rasp.Select | rasp.SelectBest, run: _Evaluation) -> Matrix:
    def predicate(key: Value, query: Value) -> bool:
        return bool(expr.predicate(key, query))

    def holds(key: Value, query: Value) -> bool:
        return key is not None and query is not None and _called(expr, "predicate", predicate, run, key, query)

    keys, queries = run.of(expr.keys), run.of(expr.queries)
    return [[holds(key, query) for key in keys] for query in queries]


def _called(
    expr: rasp.Selector, role: str, function: Callable[..., Any], run: _Evaluation, key: Value, query: Value
) -> Any:
    """A selector's function of key and query."""
    try:
        return plain(function(key, query))
    except Exception as error:
        raise UndefinedValue(
            f"{expr.name!r} is undefined on {run.tokens}: its {role} raised {type(error).__name__} "
            f"on key {key!r} and query {query!r} ({error})."
        ) from error


def _constant(expr: rasp.ConstantSOp | rasp.ConstantSelector, run: _Evaluation, missing: Any) -> list[Any]:
    if expr.check_length and len(expr.value) != len(run.tokens):
        raise UndefinedValue(
            f"{expr.name!r} is a constant of length {len(expr.value)}; the sequence has {len(run.tokens)}."
        )
    return _to_length(expr.value, len(run.tokens), missing)


def _to_length(values: Sequence[Any], length: int, missing: Any) -> list[Any]:
    """As many values as positions: what is too much is cut off, what lacks is undefined or not selected."""
    return [*list(values)[:length], *[missing] * (length - len(values))]


def _interventions(
    program: rasp.RASPExpr, length: int, chosen: Mapping[str, Sequence[Value]]
) -> dict[int, list[Value]]:
    if not chosen:
        return {}
    by_name: dict[str, list[rasp.SOp]] = {}
    for expr in expressions(program):
        if isinstance(expr, rasp.SOp):
            by_name.setdefault(expr.name, []).append(expr)
    interventions = {}
    for name, values in chosen.items():
        if name not in by_name:
            raise RaspLensError(f"The program has no s-op named {name!r}; it has {', '.join(by_name)}.")
        if len(values) != length:
            raise RaspLensError(f"{name!r} needs {length} values, one per position; got {len(values)}.")
        interventions.update({id(expr): list(values) for expr in by_name[name]})
    return interventions
