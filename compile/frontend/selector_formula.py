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
    """Return the formula that selects what another does not; two negations cancel."""
    return formula.inner if isinstance(formula, Not) else Not(formula)


def conjunction(formulas: Iterable[Formula]) -> And:
    """Return the conjunction of formulas; nested conjunctions are flattened, and each part occurs once."""
    return And(tuple(dict.fromkeys(part for formula in formulas for part in conjuncts(formula))))


def conjuncts(formula: Formula) -> Sequence[Formula]:
    """Formulas of which all must hold, none of them a conjunction."""
    return formula.parts if isinstance(formula, And) else [formula]


def together(formulas: Sequence[Formula]) -> list[Formula]:
    """The formulas, those about the same variables joined into one."""
    groups: dict[tuple[frozenset[int], frozenset[int]], list[Formula]] = {}
    for formula in formulas:
        keys, queries = (frozenset(side) for side in zip(*sources(ordered(formula)), strict=True))
        groups.setdefault((keys, queries), []).append(formula)
    return [group[0] if len(group) == 1 else And(tuple(group)) for group in groups.values()]


def ordered(formula: Formula) -> list[Formula]:
    """A formula and all that it is made of, each once and after its parts: shared parts are many times fewer."""
    found: dict[Formula, None] = {}
    waiting = [(formula, False)]
    while waiting:  # no recursion: formulas may be deeper than Python's stack
        part, parts_are_done = waiting.pop()
        if parts_are_done:
            found[part] = None
        elif part not in found:
            waiting.append((part, True))
            waiting += [(inner, False) for inner in reversed(_parts(part))]
    return list(found)


def _parts(formula: Formula) -> tuple[Formula, ...]:
    if isinstance(formula, Atom):
        return ()
    return (formula.inner,) if isinstance(formula, Not) else formula.parts


def sources(parts: Iterable[Formula]) -> list[tuple[int, int]]:
    """The key and query variables of every predicate among some formulas, in order."""
    return [(part.keys, part.queries) for part in parts if isinstance(part, Atom)]


def holds(parts: Sequence[Formula], keys: Mapping[int, Value], queries: Mapping[int, Value]) -> bool:
    """Whether the last of some formulas holds of the values of its variables.

    Every predicate is asked, as one may raise.

    Args:
        parts: The formula and all that it is made of, as `ordered` gives them.
        keys: By variable, its value at the key.
        queries: By variable, its value at the query.
    """
    truths: dict[Formula, bool] = {}
    for part in parts:
        if isinstance(part, Atom):
            key, query = keys[part.keys], queries[part.queries]
            truths[part] = key is not None and query is not None and bool(part.predicate(key, query))
        else:
            truth = all(truths[inner] for inner in _parts(part))
            truths[part] = truth is not isinstance(part, Not)
    return truths[parts[-1]]
