"""The library's programs by name, each with inputs to try it on: what commands and sweeps take."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rasplens.compile.rasp import programs
from rasplens.compile.rasp.language import SOp, Value, indices, tokens


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
    "count": Entry(lambda: programs.count("a"), "abc", 5),
    "count_less_frequent": Entry(lambda: programs.count_less_frequent(2), "abc", 5),
    "detect_pattern": Entry(lambda: programs.detect_pattern("ab"), "abc", 5, CAUSAL),
    "frac_prevs": Entry(lambda: programs.frac_prevs((tokens == "x").named("is_x")), "abcx", 5, CAUSAL),
    "histogram": Entry(programs.histogram, "abc", 5),
    "histogram_nd": Entry(programs.histogram_nd, "abc", 5),
    "induction": Entry(programs.induction, "abc", 5, CAUSAL),
    "length": Entry(programs.length, "abc", 5),
    "most_frequent": Entry(programs.most_frequent, "abc", 5),
    "nary_map": Entry(lambda: programs.nary_map(lambda x, y: x + y, tokens, indices), (1, 2, 5), 5),
    "next_larger": Entry(programs.next_larger, (1, 2, 3, 4), 4, PARTIAL),
    "offset": Entry(lambda: programs.offset(2), "abc", 5, CAUSAL),
    "pair_balance": Entry(lambda: programs.pair_balance("(", ")"), "()x", 5, CAUSAL),
    "read_both": Entry(programs.read_both, "abc", 5),
    "reverse": Entry(programs.reverse, "abc", 5),
    "shift_by": Entry(lambda: programs.shift_by(1), "abc", 5, CAUSAL),
    "shuffle_dyck": Entry(lambda: programs.shuffle_dyck(["()", "{}"]), "(){}", 4),
    "slots": Entry(programs.slots, "abc", 5),
    "sort": Entry(programs.sort, (1, 2, 3), 4),
    "sort_by_frequency": Entry(programs.sort_by_frequency, "abc", 4),
    "sort_unique": Entry(programs.sort_unique, (1, 2, 3, 4, 5), 5, PARTIAL),
    "successor": Entry(lambda: programs.successor(2), (1, 2, 3), 5, CAUSAL),
}
