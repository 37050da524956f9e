"""Tables and curves say a number for each value, and share numbers by name."""

import numpy as np
import pytest

from rasplens.compile.weighted import (
    Constant,
    Difference,
    Each,
    Keys,
    Number,
    Of,
    Only,
    Pairs,
    Polynomial,
    Queries,
    Rest,
    Times,
    When,
)
from rasplens.compile.weighted.tables import HIDDEN
from rasplens.errors import RaspLensError


def over(table, keys, queries):
    return np.asarray(table.over(keys, queries, table.initial(), np)).tolist()


def at(curve, *values):
    return np.asarray(curve.at(values, curve.initial(), np)).tolist()


def test_curves():
    size = Each("size", ("a", "b"), (2.0, 3.0))
    assert at(size, "b", "a", "c") == [3, 2, 0]
    assert at(Constant("c", 0.5), 1, 2) == [0.5, 0.5]
    assert at(Polynomial("p", size, (1.0, 0.0, 2.0)), "a", "c") == [9, 1]
    assert at(Rest(size), "a") == [-1]
    assert at(Of(lambda pair: pair[1], size), (0, "b"), None) == [3, 0]
    assert at(Number(2.0, 1.0), 5, "a") == [2, 0]


def test_one_is_not_true():
    assert at(Each("size", (1, True), (2.0, 3.0)), True, 1, 1.0) == [3, 2, 0]


def test_tables():
    size = Each("size", ("a", "b"), (2.0, 3.0))
    assert over(Keys(size), "ab", "ba") == [[2, 2], [3, 3]]
    assert over(Queries(size), "ab", "ba") == [[3, 2], [3, 2]]
    assert over(Times(Keys(size), Queries(size)), "ab", "ab") == [[4, 6], [6, 9]]
    assert over(When(lambda k, q: k == q, Keys(size)), "ab", "ab") == [[2, 0], [0, 3]]
    assert over(Only(lambda k, q: k == q), "ab", "ab") == [[0, HIDDEN], [HIDDEN, 0]]
    assert over(Pairs("t", ("a",), ("a", "b"), ((1.0, 2.0),)), "ba", "ba") == [[0, 0], [2, 1]]


def test_differences_are_linear_between_knots_and_constant_beyond():
    near = Difference("near", (-2, 0, 2), (0.0, 4.0, 2.0))
    assert over(near, (0, 1, 2, 9, "x"), (1,)) == [[2], [4], [3], [2], [0]]


def test_predicates_never_see_the_undefined_value():
    assert over(When(lambda k, q: k < q, Keys(Constant("c", 1.0))), (None, 1), (2, None)) == [[0, 0], [1, 0]]


def test_a_name_stands_for_the_same_numbers_or_is_refused():
    size = Each("size", ("a",), (2.0,))
    assert list(Times(Keys(size), Queries(size)).initial()) == ["size"]
    with pytest.raises(RaspLensError, match="'size'"):
        Times(Keys(size), Queries(Each("size", ("a",), (3.0,)))).initial()


def test_a_predicate_that_raises_is_told_with_its_values():
    with pytest.raises(RaspLensError, match=r"TypeError on key 'a' and query 1"):
        over(When(lambda k, q: k < q, Keys(Constant("c", 1.0))), ("a",), (1,))
