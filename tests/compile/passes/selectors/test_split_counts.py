"""Counts over pairs as sums of two counts."""

import pytest
from model_sizes import size

from rasplens.compile import CompileLimits, compile_program, programs, verify
from rasplens.compile.passes.pipeline import ALL_PASSES
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    causal,
    indices,
    numerical,
    tokens,
)


def sort_by(keys):
    """The tokens in the order of keys that are all different."""
    target = SelectorWidth(Select(keys, keys, Comparison.LT)).named("target")
    return Aggregate(Select(target, indices, Comparison.EQ), tokens).named("sorted")


def ordered(function):
    """Sorts by keys that are a function of token and position."""
    return sort_by(SequenceMap(function, tokens, indices).named("keys"))


LEXICOGRAPHIC = {
    "the token, then the position": lambda token, index: token + index / 10,
    "the position, then the token": lambda token, index: 10 * index + token,
    "the token, then the last position": lambda token, index: token - index / 10,
    "as tuples": lambda token, index: (token, index),
}

OTHERWISE = {
    "a sum": lambda token, index: token + 1.5 * index,
    "a product": lambda token, index: (token + 1) * (index + 1),
}

PLAIN = ["cse", "map-fusion", "dead-code", "views"]


@pytest.mark.parametrize("name", LEXICOGRAPHIC)
def test_keys_in_lexicographic_order_take_no_direction_a_pair(name):
    program = ordered(LEXICOGRAPHIC[name])
    before, after = (size(program, passes, range(6), 5) for passes in (PLAIN, [*PLAIN, "split-counts"]))
    assert before.d_model - after.d_model > 6 * 5 - 2 * (6 + 5)
    assert after.d_head < before.d_head


@pytest.mark.parametrize("name", OTHERWISE)
def test_keys_in_another_order_stay_as_they_are(name):
    """The negative control: neither part decides before the other."""
    program = ordered(OTHERWISE[name])
    before, after = (size(program, passes, range(6), 5) for passes in (PLAIN, [*PLAIN, "split-counts"]))
    assert before == after


@pytest.mark.parametrize("name", [*LEXICOGRAPHIC, *OTHERWISE])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"pad": True}, {"optimize": ["split-counts"]}], ids=str)
def test_the_program_stays_what_it_is(name, options):
    program = causal(ordered((LEXICOGRAPHIC | OTHERWISE)[name]))
    found = verify(compile_program(program, range(4), 5, partial="allow", **options))
    assert found.ok, str(found)


def test_a_sort_by_one_key_is_as_small_as_one_that_counts_twice():
    by_pairs = size(ordered(LEXICOGRAPHIC["the token, then the position"]), ALL_PASSES, range(20), 8)
    by_hand = size(programs.sort(), ALL_PASSES, range(20), 8)
    assert by_pairs == by_hand


def test_a_part_that_is_computed_itself_will_do():
    """Tokens by how rare they are, then by position."""
    histogram = SelectorWidth(Select(tokens, tokens, Comparison.EQ))
    program = sort_by(SequenceMap(lambda rare, index: rare + index / 10, Map(lambda n: -n, histogram), indices))
    assert size(program, ALL_PASSES, "abcd", 5).d_model < size(program, PLAIN, "abcd", 5).d_model - 10
    assert verify(compile_program(program, "abcd", 5)).ok


def test_a_count_that_is_read_as_a_number_stays():
    """What is read is then attention on BOS, not the count that it stands for."""
    keys = SequenceMap(lambda token, index: token + index / 10, tokens, indices)
    smaller = SelectorWidth(Select(keys, keys, Comparison.LT))
    program = numerical(Map(lambda n: n / 2, smaller)).named("half")
    assert verify(compile_program(program, range(5), 5)).ok


def test_parts_that_count_fewer_keys_than_the_whole():
    """One key by position, and any number by token."""
    before = Select(indices, indices, lambda key, query: key == max(query - 1, 0))
    program = SelectorWidth(before | Select(tokens, tokens, Comparison.EQ))
    limits = CompileLimits(executed_inputs=0)
    assert verify(compile_program(program, "abc", 4, limits=limits)).ok
