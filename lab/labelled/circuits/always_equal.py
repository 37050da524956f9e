"""Families of circuits whose programs always give the same answers, and are easily taken for each other."""

from lab.labelled.circuits.circuit import Circuit, family, of_program
from lab.programs import averaging, combining
from lab.programs.averaging import mean, total, total_so_far
from lab.programs.counting import count, count_and_add, lower_and_equal
from lab.programs.looking import counted, first_other, found, highest_above, latest_a
from lab.programs.moving import relayed
from lab.programs.ordering import highest, highest_by_rank, sorted_by_counts
from lab.programs.recalling import first_a_by_counting, first_a_directly
from lab.programs.selectors import (
    EARLIER,
    ELSEWHERE,
    HIGHER,
    LATER,
    LOWER,
    OTHER,
    SAME,
    SO_FAR,
    always,
    backwards,
    before,
    holds,
)
from rasplens.compile.rasp import Selector, programs, tokens


def _looking_and_counting(name: str, vocab: str | range, where: Selector) -> Circuit:
    return of_program(name, vocab, found(where, f"{name}_by_looking"), counted(where, f"{name}_by_counting"))


def _association(name: str, n: int, operation: combining.Operation) -> Circuit:
    return of_program(name, range(n), combining.from_own(operation, name), combining.from_far(operation, name))


ALWAYS_EQUAL = (
    *family(
        "same attention, other variables",
        of_program("product", range(3), combining.product_from_sum(), combining.product_from_difference()),
        of_program("range", range(3), combining.range_from_highest(), combining.range_from_lowest()),
        of_program("both_ends", range(2), combining.both_ends_by_token(), combining.both_ends_by_equality(), 7),
    ),
    *family(
        "uniform attention both",
        of_program("share_of_all", "abc", mean(tokens == "a", "share_of_own"), averaging.share_of_rest()),
        of_program("more", "abc", averaging.more_by_difference(), averaging.more_by_both()),
        of_program("sum", range(3), averaging.sum_by_total(), averaging.sum_by_kinds(), 4),
    ),
    *family(
        "width against mean",
        of_program(
            "count",
            "abc",
            count(holds("a"), "count_by_width"),
            total(mean(tokens == "a", "mean_of_a"), 5, "count_by_mean"),
        ),
        of_program("own_count", "ab", count(SAME, "own_by_width"), averaging.own_by_mean(), 7),
        of_program(
            "so_far",
            "abc",
            count(holds("a") & SO_FAR, "so_far_by_width"),
            total_so_far(tokens == "a", "share_so_far", "so_far_by_mean"),
        ),
        of_program(
            "most",
            "abc",
            counted(holds("a"), "most_by_width", "width_of_a", more_than=2),
            (mean(tokens == "a", "mean_a") > 0.5).named("most_by_mean"),
        ),
    ),
    *family(
        "looking against counting",
        _looking_and_counting("any", "abcd", holds("a")),
        _looking_and_counting("seen_before", "abcd", SAME & EARLIER),
        _looking_and_counting("seen_after", "abc", SAME & LATER),
        _looking_and_counting("exceeded", range(4), HIGHER),
    ),
    *family(
        "order of association",
        _association("sum_of_three", 3, lambda x, y: (x + y) % 3),
        _association("highest_of_three", 4, max),
        of_program("parity_of_four", range(2), combining.parity_in_a_row(), combining.parity_by_halves(), 7),
    ),
    *family(
        "relay over another position",
        of_program(
            "three_on",
            "abcd",
            relayed(before(1, 5), before(2, 5), "one_first", "three_on_by_one"),
            relayed(before(2, 5), before(1, 5), "two_first", "three_on_by_two"),
        ),
        of_program(
            "first_everywhere",
            "abcd",
            relayed(lambda i: 0 if i == 2 else i, always(2), "at_middle", "first_by_middle"),
            relayed(lambda i: 0 if i == 4 else i, always(4), "at_last", "first_by_last"),
        ),
        of_program(
            "backwards",
            "abc",
            relayed(before(1, 5), backwards(5, 1), "on_one", "backwards_by_one"),
            relayed(before(2, 5), backwards(5, 2), "on_two", "backwards_by_two"),
        ),
    ),
    *family(
        "superset of the true selector",
        of_program(
            "elsewhere",
            "abc",
            count(SAME & ELSEWHERE, "elsewhere_exactly"),
            count_and_add(SAME, "everywhere", -1, "elsewhere_and_here"),
        ),
        of_program("lower", range(4), count(LOWER, "lower_exactly"), lower_and_equal()),
        of_program(
            "earlier",
            "abc",
            count(SAME & EARLIER, "earlier_exactly"),
            count_and_add(SAME & SO_FAR, "up_to_here", -1, "earlier_and_here"),
        ),
    ),
    *family(
        "subset of the true selector",
        of_program("latest_a", "abcd", found(holds("a"), "a_anywhere"), found(latest_a(), "a_latest")),
        of_program(
            "highest_above", range(4), found(HIGHER, "above_anywhere"), found(highest_above(), "above_at_most")
        ),
        of_program("first_other", "abc", found(OTHER, "other_anywhere"), found(first_other(), "other_first")),
    ),
    *family(
        "another algorithm",
        of_program("highest", range(4), highest().named("highest_directly"), highest_by_rank()),
        of_program("sorted", range(3), programs.sort().named("sorted_by_rank"), sorted_by_counts()),
        of_program("first_a", "abc", first_a_directly(), first_a_by_counting()),
    ),
)
"""The circuits of these families."""
