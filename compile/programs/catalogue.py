"""The library's programs by name, each with inputs to try it on: what commands and sweeps take."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rasplens.compile.programs.balancing import frac_prevs, pair_balance, shuffle_dyck
from rasplens.compile.programs.compression import slots
from rasplens.compile.programs.copying import induction, offset
from rasplens.compile.programs.counting import (
    count,
    count_less_frequent,
    histogram,
    histogram_nd,
    length,
    most_frequent,
)
from rasplens.compile.programs.moving import detect_pattern, nary_map, reverse, shift_by
from rasplens.compile.programs.sorting import next_larger, sort, sort_by_frequency, sort_unique, successor
from rasplens.compile.rasp import SOp, Value, indices, tokens


@dataclass(frozen=True)
class Entry:
    """A program and small inputs for it.

    Attributes:
        build: Builds the program.
        vocab: Its tokens.
        max_len: The longest sequence.
        options: What else `compile_program` needs to know.
    """

    build: Callable[[], SOp]
    vocab: Sequence[Value]
    max_len: int
    options: tuple[tuple[str, Any], ...] = ()


CAUSAL, PARTIAL = (("causal", True),), (("partial", "allow"),)

CATALOGUE = {
    "count": Entry(lambda: count("a"), "abc", 5),
    "count_less_frequent": Entry(lambda: count_less_frequent(2), "abc", 5),
    "detect_pattern": Entry(lambda: detect_pattern("ab"), "abc", 5, CAUSAL),
    "frac_prevs": Entry(lambda: frac_prevs((tokens == "x").named("is_x")), "abcx", 5, CAUSAL),
    "histogram": Entry(histogram, "abc", 5),
    "histogram_nd": Entry(histogram_nd, "abc", 5),
    "induction": Entry(induction, "abc", 5, CAUSAL),
    "length": Entry(length, "abc", 5),
    "most_frequent": Entry(most_frequent, "abc", 5),
    "nary_map": Entry(lambda: nary_map(lambda x, y: x + y, tokens, indices), (1, 2, 5), 5),
    "next_larger": Entry(next_larger, (1, 2, 3, 4), 4, PARTIAL),
    "offset": Entry(lambda: offset(2), "abc", 5, CAUSAL),
    "pair_balance": Entry(lambda: pair_balance("(", ")"), "()x", 5, CAUSAL),
    "reverse": Entry(reverse, "abc", 5),
    "shift_by": Entry(lambda: shift_by(1), "abc", 5, CAUSAL),
    "shuffle_dyck": Entry(lambda: shuffle_dyck(["()", "{}"]), "(){}", 4),
    "slots": Entry(slots, "abc", 5),
    "sort": Entry(sort, (1, 2, 3), 4),
    "sort_by_frequency": Entry(sort_by_frequency, "abc", 4),
    "sort_unique": Entry(sort_unique, (1, 2, 3, 4, 5), 5, PARTIAL),
    "successor": Entry(lambda: successor(2), (1, 2, 3), 5, CAUSAL),
}
