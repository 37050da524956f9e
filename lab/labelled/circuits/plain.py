"""Plain circuits: two programs that gather, count or average in other steps."""

from lab.labelled.circuits.circuit import Circuit, of_program
from lab.programs.averaging import mean
from lab.programs.counting import count, histogram_by_counts, rank_by_higher, share_by_counts
from lab.programs.looking import counted, equal_by_looking, equal_by_reading, found, majority_by_others
from lab.programs.moving import moved, pointed_at_by_count, pointed_at_by_rest, relayed
from lab.programs.selectors import ELSEWHERE, LOWER_OR_EQUAL, SAME, SO_FAR, always, backwards, before, holds
from rasplens.compile.rasp import tokens
from rasplens.tasks import Task, get_task


def _copy_task() -> Task:
    return get_task("copy", n_letters=8, block=3, length=9)


PLAIN = (
    Circuit(
        "copy", _copy_task, lambda: _copy_task().programs["offset"], lambda: _copy_task().programs["induction"]
    ),
    of_program(
        "shift", "abcd",
        moved(tokens, before(3, 5), "shift_at_once"),
        relayed(before(1, 5), before(2, 5), "one_on", "shift_in_steps"),
    ),
    of_program("histogram", "ab", count(SAME, "histogram_by_match"), histogram_by_counts(), 7),
    of_program(
        "reverse", "abcd",
        moved(tokens, backwards(5), "reverse_at_once"),
        relayed(before(1, 5), backwards(5, 1), "moved_on", "reverse_in_steps"),
    ),
    of_program(
        "repeated", "abcd",
        counted(SAME, "repeated_by_count", "width", more_than=1),
        found(SAME & ELSEWHERE, "repeated_by_looking", "found_elsewhere"),
    ),
    of_program("share", "abc", mean(tokens == "a", "share_by_average", SO_FAR), share_by_counts()),
    of_program(
        "last", "abcd",
        moved(tokens, always(4), "last_at_once"),
        relayed(before(2, 5), always(1), "two_on", "last_in_steps"),
    ),
    of_program(
        "majority", "ab",
        counted(holds("a"), "majority_by_own", "count_of_a", more_than=3),
        majority_by_others(),
        7,
    ),
    of_program(
        "same_as_first", "abcd",
        equal_by_reading(always(0), "first_token", "same_as_first_by_reading"),
        equal_by_looking(always(0), "found_first", "same_as_first_by_looking"),
    ),
    of_program(
        "ends", "abcd",
        equal_by_reading(always(4), "last_one", "ends_by_reading", moved(tokens, always(0), "first_one")),
        equal_by_looking(always(4), "found_at_end", "ends_by_looking", moved(tokens, always(0), "first_read")),
    ),
    of_program(
        "mirror", "abcd",
        equal_by_reading(backwards(5), "mirrored", "mirror_by_reading"),
        equal_by_looking(backwards(5), "found_mirrored", "mirror_by_looking"),
    ),
    of_program("rank", "abcd", count(LOWER_OR_EQUAL, "rank_by_lower"), rank_by_higher()),
    of_program(
        "swap", "abc",
        moved(tokens, lambda i: i ^ 1, "swap_at_once"),
        relayed(backwards(6), lambda i: 5 - (i ^ 1), "backwards", "swap_in_steps"),
        6,
    ),
    of_program("pointed_at", "abc", pointed_at_by_count(), pointed_at_by_rest()),
)  # fmt: skip
"""All of them."""
