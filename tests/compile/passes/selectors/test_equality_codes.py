"""Comparisons of binary codes."""

import numpy as np
import pytest
from model_sizes import size

from rasplens.compile import compile_program, verify
from rasplens.compile.ir import EqualityNode, PredicateNode
from rasplens.compile.passes.selectors.equality_codes import _coded
from rasplens.compile.rasp import Aggregate, Comparison, Select, SelectorWidth, indices, numerical, tokens

EQUAL = Select(tokens, tokens, Comparison.EQ)
EARLIER = Aggregate(EQUAL & Select(indices, indices, Comparison.LT), tokens)


def predicate(table):
    """A predicate of a key and a query that can be undefined as well."""
    table = np.pad(np.array(table, dtype=bool), ((0, 1), (0, 1)))
    return PredicateNode((0, 0), "paired", EQUAL, True, table)


def test_a_pairing_has_codes_that_agree_where_it_holds():
    table = np.zeros((6, 7))
    table[[0, 1, 2, 4, 5], [3, 0, 6, 1, 2]] = 1
    coded = _coded(predicate(table))
    assert isinstance(coded, EqualityNode)
    assert coded.key_codes.shape == (7, 3)
    agreeing = coded.key_codes @ coded.query_codes.T
    np.testing.assert_array_equal(agreeing == 3, coded.table)
    assert agreeing[~coded.table].max() == 1  # one bit that differs, or nothing that it could equal
    for codes in (coded.key_codes[[3, 6]], coded.query_codes[[4, 5, 7]]):
        assert not codes.any()


@pytest.mark.parametrize(
    "table",
    [np.tri(6), np.eye(6) + np.eye(6, k=1), np.eye(2), np.zeros((5, 5))],
    ids=["several keys", "two keys each", "as few as bits", "nothing"],
)
def test_what_is_no_pairing_stays_as_it_is(table):
    plain = predicate(table)
    assert _coded(plain) is plain


def test_what_selects_undefined_keys_stays_as_it_is():
    plain = predicate(np.eye(6))
    plain.table[-1, 0] = True
    assert _coded(plain) is plain


@pytest.mark.parametrize(("vocab", "bits"), [("abc", 2), ("abcdefgh", 3), (range(100), 7)])
def test_a_head_needs_as_many_directions_as_bits(vocab, bits):
    histogram = SelectorWidth(EQUAL)
    assert size(histogram, ["equality-codes", "views"], vocab, 3).d_head == bits + 1  # the BOS has one more
    assert size(histogram, ["views"], vocab, 3).d_head == len(vocab)


@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        SelectorWidth(EQUAL),
        Aggregate(EQUAL & Select(indices, indices, Comparison.LT), numerical(indices), default=-1),
        Aggregate(EQUAL & Select(indices, indices, lambda key, query: key == query - 1), tokens),
        Aggregate(Select(EARLIER, tokens, Comparison.EQ), numerical(indices), default=0),
    ],
    ids=["count", "mean before", "both equal", "undefined keys"],
)
def test_levels_of_codes_add_up_with_others(program, pad):
    """Beside other predicates, a BOS that counts or stands for nothing, or padding; with undefined keys."""
    options = {"pad": pad, "partial": "allow"}
    plain, coded = (
        compile_program(program, "abcde", 4, optimize=passes, **options) for passes in ((), ["equality-codes"])
    )
    weights, others = (model.transformer.weights for model in (plain, coded))
    assert any(not np.array_equal(weights[name], others[name]) for name in weights)  # it was coded at all
    assert verify(coded).ok
