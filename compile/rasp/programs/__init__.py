"""RASP programs to compile, compare with and learn from.

Each is a function that builds the program; its docstring has an example, which is a test, and says whether
it means the same where positions see only the past. `arithmetic` and
`brackets` have programs that write their answer token by token.
"""

from rasplens.compile.rasp.programs import arithmetic as arithmetic
from rasplens.compile.rasp.programs import brackets as brackets
from rasplens.compile.rasp.programs.balancing import frac_prevs, pair_balance, shuffle_dyck
from rasplens.compile.rasp.programs.bottleneck import read_both, slots
from rasplens.compile.rasp.programs.copying import induction, offset
from rasplens.compile.rasp.programs.counting import (
    count,
    count_less_frequent,
    histogram,
    histogram_nd,
    length,
    most_frequent,
)
from rasplens.compile.rasp.programs.moving import detect_pattern, nary_map, reverse, shift_by
from rasplens.compile.rasp.programs.sorting import next_larger, sort, sort_by_frequency, sort_unique, successor

__all__ = [
    "count",
    "count_less_frequent",
    "detect_pattern",
    "frac_prevs",
    "histogram",
    "histogram_nd",
    "induction",
    "length",
    "most_frequent",
    "nary_map",
    "next_larger",
    "offset",
    "pair_balance",
    "read_both",
    "reverse",
    "shift_by",
    "shuffle_dyck",
    "slots",
    "sort",
    "sort_by_frequency",
    "sort_unique",
    "successor",
]
