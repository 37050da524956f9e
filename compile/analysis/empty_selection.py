"""Can a selector select nothing? Where it provably cannot, the model needs no position to fall back on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Positions = tuple[np.ndarray, np.ndarray]
"""The codes of keys and of queries, `[length - 1, position]`."""


@dataclass(frozen=True, eq=False)
class Conjunct:
    """One predicate of a selector.

    Attributes:
        table: Boolean `[key code, query code]`, the last of each for undefined.
        occurring: The same, without the places for undefined where that does not occur.
        is_same: Whether keys and queries are one variable.
        positions: The codes of keys and of queries, `[length - 1, position]`, where they depend on nothing
            else; -1 is undefined.
    """

    table: np.ndarray
    occurring: np.ndarray
    is_same: bool
    positions: Positions | None

    @property
    def always_holds(self) -> bool:
        """Whether it holds whatever the key and the query."""
        return bool(self.occurring.all())

    @property
    def holds_of_itself(self) -> bool:
        """Whether it holds where key and query are the same position."""
        return self.always_holds or (self.is_same and bool(self.occurring.diagonal().all()))


def may_be_empty(conjuncts: Sequence[Conjunct], visible: np.ndarray) -> bool:
    """Whether a conjunction of predicates might select nothing at a position that sees something.

    True is the safe answer. It is False where one of three arguments covers every sequence: every
    predicate always holds; every predicate holds of a position with itself, and positions see
    themselves; or all depends on length and position alone, and no row came out empty at any length.

    Args:
        conjuncts: The predicates.
        visible: Boolean `[query, key]` over the longest sequence.
    """
    if all(conjunct.always_holds for conjunct in conjuncts):
        return False
    sees_itself = bool(visible.diagonal()[visible.any(axis=1)].all())
    if sees_itself and all(conjunct.holds_of_itself for conjunct in conjuncts):
        return False
    known = [(conjunct.table, conjunct.positions) for conjunct in conjuncts if conjunct.positions is not None]
    return len(known) < len(conjuncts) or _some_row_is_empty(known, visible)


def some_position_sees_nothing(visible: np.ndarray) -> bool:
    """Whether some position of some sequence can attend to nothing at all."""
    return not all(visible[query, : query + 1].any() for query in range(len(visible)))


def _some_row_is_empty(tables: Sequence[tuple[np.ndarray, Positions]], visible: np.ndarray) -> bool:
    """Whether predicates of length and position alone leave some position nothing of what it sees."""
    for length in range(1, len(visible) + 1):
        seen = visible[:length, :length]
        selected = seen
        for table, positions in tables:
            keys, queries = (codes[length - 1, :length] for codes in positions)
            selected = selected & table[keys[None, :], queries[:, None]]
        if (seen.any(axis=1) & ~selected.any(axis=1)).any():
            return True
    return False
