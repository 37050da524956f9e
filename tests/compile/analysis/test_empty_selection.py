import numpy as np

from rasplens.compile.analysis.empty_selection import Conjunct, may_be_empty, some_position_sees_nothing

FULL, CAUSAL, STRICT = np.ones((3, 3), bool), np.tri(3, dtype=bool), np.tri(3, k=-1, dtype=bool)


def conjunct(table, is_defined=True, is_same=False, positions=None):
    """A predicate of defined keys and queries, or of ones that may be undefined and are then not selected."""
    padded = np.pad(np.array(table, dtype=bool), ((0, 1), (0, 1)))
    return Conjunct(padded, padded[:-1, :-1] if is_defined else padded, is_same, positions)


def at_every_length(codes):
    """Codes by position, the same for every length of the sequence."""
    return np.tile(codes, (len(codes), 1))


ALWAYS = [[1, 1], [1, 1]]
EQUAL = [[1, 0], [0, 1]]


def test_a_predicate_that_always_holds_selects_something():
    assert not may_be_empty([conjunct(ALWAYS)], CAUSAL)
    assert may_be_empty([conjunct(ALWAYS, is_defined=False)], CAUSAL)


def test_equality_of_a_variable_with_itself_selects_the_position_itself():
    assert not may_be_empty([conjunct(EQUAL, is_same=True)], CAUSAL)
    assert may_be_empty([conjunct(EQUAL, is_same=False)], CAUSAL)
    assert may_be_empty([conjunct(EQUAL, is_same=True)], STRICT)
    assert may_be_empty([conjunct([[1, 0], [0, 0]], is_same=True)], CAUSAL)


def test_positions_alone_are_tried_out_at_every_length():
    here = at_every_length(np.arange(3))
    previous_or_first = [[k == max(q - 1, 0) for q in range(3)] for k in range(3)]
    assert not may_be_empty([conjunct(previous_or_first, positions=(here, here))], FULL)
    last = [[k == 2 for q in range(3)] for k in range(3)]
    assert may_be_empty([conjunct(last, positions=(here, here))], FULL)  # at length 1 there is no third
    undefined_first = at_every_length(np.array([-1, 1, 2]))
    assert may_be_empty([conjunct(previous_or_first, positions=(undefined_first, here))], FULL)


def test_conjunctions_need_one_argument_that_covers_all_parts():
    here = at_every_length(np.arange(3))
    equal = conjunct(EQUAL, is_same=True)
    itself = conjunct(np.eye(3), is_same=True, positions=(here, here))
    assert not may_be_empty([equal, itself], CAUSAL)
    previous = conjunct([[k == q - 1 for q in range(3)] for k in range(3)], positions=(here, here))
    assert may_be_empty([equal, previous], CAUSAL)


def test_rows_that_see_nothing_are_no_concern_of_a_selector():
    here = at_every_length(np.arange(3))
    previous = conjunct([[k == q - 1 for q in range(3)] for k in range(3)], positions=(here, here))
    assert not may_be_empty([previous], STRICT)
    assert may_be_empty([previous], CAUSAL)


def test_positions_that_see_nothing():
    assert some_position_sees_nothing(STRICT)
    assert not some_position_sees_nothing(CAUSAL)
    only_ahead = np.array([[0, 1], [1, 1]], dtype=bool)
    assert some_position_sees_nothing(only_ahead)  # in a sequence of one token
