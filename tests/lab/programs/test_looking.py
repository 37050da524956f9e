"""Looking, counting and averaging say the same on every input."""

import itertools

import pytest

from lab.programs.averaging import majority_by_averaging, mean, total_so_far
from lab.programs.counting import count
from lab.programs.looking import counted, equal_by_looking, equal_by_reading, found
from lab.programs.selectors import EARLIER, ELSEWHERE, SAME, SO_FAR, always, backwards, holds
from rasplens.compile.rasp import tokens


def agree(*programs, vocab="abc", length=4):
    for word in itertools.product(vocab, repeat=length):
        first, *others = [program(word) for program in programs]
        assert all(other == first for other in others), word


@pytest.mark.parametrize("where", [holds("a"), SAME & EARLIER, SAME & ELSEWHERE])
def test_looking_finds_what_counting_counts(where):
    agree(found(where, "found"), counted(where, "counted"))


@pytest.mark.parametrize("place", [always(0), backwards(4)])
def test_a_token_is_compared_by_reading_or_by_looking(place):
    agree(equal_by_reading(place, "read", "equal"), equal_by_looking(place, "gathered", "found"))


def test_means_give_counts():
    agree(count(holds("a") & SO_FAR, "so_far"), total_so_far(tokens == "a", "share", "total"))
    agree(majority_by_averaging(), counted(holds("a"), "majority", more_than=2))
    assert mean(tokens == "a", "share", EARLIER)("ab") == [0, 1]
