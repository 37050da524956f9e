"""Plain circuits: two programs that gather, count or average in other steps."""

from lab.labelled.circuits.circuit import Circuit, of_program
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    SOp,
    indices,
    numerical,
    tokens,
)
from rasplens.tasks import Task, get_task


def gather(offset: int, of: SOp, name: str) -> SOp:
    """Return the values `offset` positions before, cyclically in a sequence of 5."""
    return Aggregate(Select(indices, indices, lambda k, q: k == (q - offset) % 5), of).named(name)


def shift_at_once() -> SOp:
    """Three positions on, in one step."""
    return gather(3, tokens, "shift_at_once")


def shift_in_steps() -> SOp:
    """One position on, then two."""
    return gather(2, gather(1, tokens, "one_on"), "shift_in_steps")


def reverse_at_once() -> SOp:
    """The sequence backwards, in one step."""
    return Aggregate(Select(indices, indices, lambda k, q: k == 4 - q), tokens).named("reverse_at_once")


def reverse_in_steps() -> SOp:
    """One position on, then backwards from there."""
    back = Select(indices, indices, lambda k, q: k == (5 - q) % 5)
    return Aggregate(back, gather(1, tokens, "moved_on")).named("reverse_in_steps")


def histogram_by_match() -> SOp:
    """How often the own token occurs: the width of a match."""
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("histogram_by_match")


def histogram_by_counts() -> SOp:
    """How often the own token occurs, among 7 tokens of two kinds: `a`s are counted, `b`s are the others."""
    count = SelectorWidth(Select(tokens, tokens, lambda k, q: k == "a")).named("count_a")
    return SequenceMap(lambda t, n: n if t == "a" else 7 - n, tokens, count).named("histogram_by_counts")


def repeated_by_count() -> SOp:
    """Whether the own token occurs more than once: by counting it."""
    width = SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("width")
    return Map(lambda n: n > 1, width).named("repeated_by_count")


def repeated_by_looking() -> SOp:
    """Whether the own token occurs more than once: by looking whether it stands at another position."""
    other = Select(tokens, tokens, Comparison.EQ) & Select(indices, indices, Comparison.NEQ)
    found = Aggregate(other, Map(lambda t: 1, tokens), default=0).named("found_elsewhere")
    return Map(lambda n: n == 1, found).named("repeated_by_looking")


def share_by_average() -> SOp:
    """The share of `a` so far: an average."""
    so_far = Select(indices, indices, Comparison.LEQ)
    return numerical(Aggregate(so_far, numerical(tokens == "a"), default=0)).named("share_by_average")


def share_by_counts() -> SOp:
    """The share of `a` so far: a count, divided by the position."""
    seen = Select(tokens, indices, lambda k, q: k == "a") & Select(indices, indices, Comparison.LEQ)
    count = SelectorWidth(seen).named("count_so_far")
    return numerical(SequenceMap(lambda n, i: n / (i + 1), count, indices)).named("share_by_counts")


def last_at_once() -> SOp:
    """The last token everywhere, in one step."""
    return Aggregate(Select(indices, indices, lambda k, q: k == 4), tokens).named("last_at_once")


def last_in_steps() -> SOp:
    """Two positions on, and from there to everywhere."""
    everywhere = Select(indices, indices, lambda k, q: k == 1)
    return Aggregate(everywhere, gather(2, tokens, "two_on")).named("last_in_steps")


def majority_by_own() -> SOp:
    """Whether most of 7 tokens are `a`: by counting those."""
    count = SelectorWidth(Select(tokens, tokens, lambda k, q: k == "a")).named("count_of_a")
    return Map(lambda n: n > 3, count).named("majority_by_own")


def majority_by_others() -> SOp:
    """Whether most of 7 tokens, of two kinds, are `a`: by counting the others."""
    count = SelectorWidth(Select(tokens, tokens, lambda k, q: k == "b")).named("count_of_b")
    return Map(lambda n: n < 4, count).named("majority_by_others")


def same_as_first_by_reading() -> SOp:
    """Whether a token is the first one: by reading that one, and comparing."""
    first = Aggregate(Select(indices, indices, lambda k, q: k == 0), tokens).named("first_token")
    return SequenceMap(lambda own, other: own == other, tokens, first).named("same_as_first_by_reading")


def same_as_first_by_looking() -> SOp:
    """Whether a token is the first one: by looking whether the own token stands at the first position."""
    there = Select(tokens, tokens, Comparison.EQ) & Select(indices, indices, lambda k, q: k == 0)
    found = Aggregate(there, Map(lambda t: 1, tokens), default=0).named("found_first")
    return Map(lambda n: n == 1, found).named("same_as_first_by_looking")


def ends_by_reading() -> SOp:
    """Whether the first and the last token are the same: by reading both, and comparing."""
    first = Aggregate(Select(indices, indices, lambda k, q: k == 0), tokens).named("first_one")
    last = Aggregate(Select(indices, indices, lambda k, q: k == 4), tokens).named("last_one")
    return SequenceMap(lambda one, other: one == other, first, last).named("ends_by_reading")


def ends_by_looking() -> SOp:
    """Whether the first and the last token are the same: by reading the first, and looking for it at the last."""
    first = Aggregate(Select(indices, indices, lambda k, q: k == 0), tokens).named("first_read")
    there = Select(tokens, first, Comparison.EQ) & Select(indices, indices, lambda k, q: k == 4)
    found = Aggregate(there, Map(lambda t: 1, tokens), default=0).named("found_at_end")
    return Map(lambda n: n == 1, found).named("ends_by_looking")


def mirror_by_reading() -> SOp:
    """Whether a token is the same as its mirror image: by reading that one, and comparing."""
    other = Aggregate(Select(indices, indices, lambda k, q: k == 4 - q), tokens).named("mirrored")
    return SequenceMap(lambda own, image: own == image, tokens, other).named("mirror_by_reading")


def mirror_by_looking() -> SOp:
    """Whether a token is the same as its mirror image: by looking whether the own token stands there."""
    there = Select(tokens, tokens, Comparison.EQ) & Select(indices, indices, lambda k, q: k == 4 - q)
    found = Aggregate(there, Map(lambda t: 1, tokens), default=0).named("found_mirrored")
    return Map(lambda n: n == 1, found).named("mirror_by_looking")


def rank_by_lower() -> SOp:
    """How many tokens come no later in the alphabet: by counting them."""
    return SelectorWidth(Select(tokens, tokens, Comparison.LEQ)).named("rank_by_lower")


def rank_by_higher() -> SOp:
    """How many tokens come no later in the alphabet: by counting those that come later."""
    later = SelectorWidth(Select(tokens, tokens, Comparison.GT)).named("later")
    return Map(lambda n: 5 - n, later).named("rank_by_higher")


def swap_at_once() -> SOp:
    """Every two neighbours swapped in a sequence of 6, in one step."""
    return Aggregate(Select(indices, indices, lambda k, q: k == q ^ 1), tokens).named("swap_at_once")


def swap_in_steps() -> SOp:
    """Every two neighbours swapped in a sequence of 6: backwards, and from there to where they belong."""
    backwards = Aggregate(Select(indices, indices, lambda k, q: k == 5 - q), tokens).named("backwards")
    return Aggregate(Select(indices, indices, lambda k, q: k == 5 - (q ^ 1)), backwards).named("swap_in_steps")


def pointed_at_by_count() -> SOp:
    """The token that the number of `a`s points at: by counting them."""
    count = SelectorWidth(Select(tokens, tokens, lambda k, q: k == "a")).named("number_of_a")
    place = Map(lambda n: n % 5, count).named("place")
    return Aggregate(Select(indices, place, Comparison.EQ), tokens).named("pointed_at_by_count")


def pointed_at_by_rest() -> SOp:
    """The token that the number of `a`s points at: by counting all others."""
    count = SelectorWidth(Select(tokens, tokens, lambda k, q: k != "a")).named("number_of_others")
    place = Map(lambda n: (5 - n) % 5, count).named("place_by_others")
    return Aggregate(Select(indices, place, Comparison.EQ), tokens).named("pointed_at_by_rest")


def _copy_task() -> Task:
    return get_task("copy", n_letters=8, block=3, length=9)


PLAIN = (
    Circuit(
        "copy", _copy_task, lambda: _copy_task().programs["offset"], lambda: _copy_task().programs["induction"]
    ),
    of_program("shift", "abcd", shift_at_once, shift_in_steps),
    of_program("histogram", "ab", histogram_by_match, histogram_by_counts, length=7),
    of_program("reverse", "abcd", reverse_at_once, reverse_in_steps),
    of_program("repeated", "abcd", repeated_by_count, repeated_by_looking),
    of_program("share", "abc", share_by_average, share_by_counts),
    of_program("last", "abcd", last_at_once, last_in_steps),
    of_program("majority", "ab", majority_by_own, majority_by_others, length=7),
    of_program("same_as_first", "abcd", same_as_first_by_reading, same_as_first_by_looking),
    of_program("ends", "abcd", ends_by_reading, ends_by_looking),
    of_program("mirror", "abcd", mirror_by_reading, mirror_by_looking),
    of_program("rank", "abcd", rank_by_lower, rank_by_higher),
    of_program("swap", "abc", swap_at_once, swap_in_steps, length=6),
    of_program("pointed_at", "abc", pointed_at_by_count, pointed_at_by_rest),
)
"""All of them."""
