"""Selectors as formulas over predicates, and what a head makes of them: a conjunction of predicates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rasplens.compile.rasp import Predicate, Value


@dataclass(frozen=True, eq=False)
class Atom:
    """A predicate of a key variable and a query variable, by node id; undefined ones never satisfy it."""

    keys: int
    queries: int
    predicate: Predicate


@dataclass(frozen=True, eq=False)
class Not:
    """A formula that selects what another one does not."""

    inner: "Formula"


@dataclass(frozen=True, eq=False)
class And:
    """A formula that selects what every one of several does; what either selects is the negation of neither."""

    parts: tuple["Formula", ...]


Formula = Atom | Not | And


def negation(formula: Formula) -> Formula:
    """What a formula does not select; two negations cancel."""
    return formula.inner if isinstance(formula, Not) else Not(formula)


def conjunction(formulas: Iterable[Formula]) -> And:
    """What all formulas select; a conjunction of conjunctions is one of their parts."""
    return And(tuple(part for formula in formulas for part in conjuncts(formula)))


def conjuncts(formula: Formula) -> Sequence[Formula]:
    """Formulas of which all must hold, none of them a conjunction."""
    return formula.parts if isinstance(formula, And) else [formula]


def together(formulas: Sequence[Formula]) -> list[Formula]:
    """The formulas, those about the same variables joined into one."""
    groups: dict[tuple[frozenset[int], frozenset[int]], list[Formula]] = {}
    for formula in formulas:
        keys, queries = (frozenset(side) for side in zip(*sources(formula), strict=True))
        groups.setdefault((keys, queries), []).append(formula)
    return [group[0] if len(group) == 1 else And(tuple(group)) for group in groups.values()]


def sources(formula: Formula) -> list[tuple[int, int]]:
    """The key and query variables of every predicate, in order."""
    if isinstance(formula, Atom):
        return [(formula.keys, formula.queries)]
    parts = (formula.inner,) if isinstance(formula, Not) else formula.parts
    return [pair for part in parts for pair in sources(part)]


def holds(formula: Formula, keys: Mapping[int, Value], queries: Mapping[int, Value]) -> bool:
    """Whether a formula holds of the values of its variables; every predicate is asked, as one may raise."""
    if isinstance(formula, Not):
        return not holds(formula.inner, keys, queries)
    if isinstance(formula, And):
        truths = [holds(part, keys, queries) for part in formula.parts]
        return all(truths)
    key, query = keys[formula.keys], queries[formula.queries]
    return key is not None and query is not None and bool(formula.predicate(key, query))
