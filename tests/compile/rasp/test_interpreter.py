import numpy as np
import pytest
from rasp_examples import EVERYTHING, PREVIOUS, SHIFTED

from rasplens.compile import UndefinedValue, rasp, run
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    ConstantSelector,
    ConstantSOp,
    Full,
    LinearSequenceMap,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    Where,
    indices,
    length,
    tokens,
)
from rasplens.compile.rasp.interpreter import expressions, mean, visibility
from rasplens.compile.rasp.values import value_key


def test_primitives():
    assert run(tokens, "abc") == ["a", "b", "c"]
    assert run(indices, "abc") == [0, 1, 2]
    assert run(length, "abc") == [3, 3, 3]
    assert run(Full(7), "abc") == [7, 7, 7]
    assert run(ConstantSOp([4, 5, 6]), "abc") == [4, 5, 6]
    assert run(ConstantSOp([4, 5, 6], check_length=False), "ab") == [4, 5]
    assert run(LinearSequenceMap(tokens, indices, 2, -1), [5, 6]) == [10, 11]


def test_selectors_are_rows_of_queries():
    assert run(PREVIOUS, "abc") == [[False] * 3, [True, False, False], [False, True, False]]
    assert run(~PREVIOUS, "ab") == [[True, True], [False, True]]
    assert run(PREVIOUS | ~PREVIOUS, "ab") == [[True, True], [True, True]]
    assert run(PREVIOUS & ~PREVIOUS, "ab") == [[False, False], [False, False]]
    assert run(ConstantSelector([[1, 0], [1, 1]]), "ab") == [[True, False], [True, True]]


def test_causal_selectors_see_no_future_even_when_negated():
    assert run(EVERYTHING, "ab", causal=True) == [[True, False], [True, True]]
    assert run(~PREVIOUS, "ab", causal=True) == [[True, False], [False, True]]
    assert run(SelectorWidth(EVERYTHING), "abc", causal=True) == [1, 2, 3]
    assert run(SelectorWidth(EVERYTHING), "abc") == [3, 3, 3]


def test_a_mask_limits_what_selectors_see():
    mask = np.array([[True, False], [False, False]])
    assert run(SelectorWidth(EVERYTHING), "ab", mask=mask) == [1, 0]
    assert run(SelectorWidth(EVERYTHING), "a", mask=mask) == [1]
    with pytest.raises(ValueError, match=r"mask must be \[query, key\] for 3 positions; got shape \(2, 2\)"):
        run(tokens, "abc", mask=mask)


def test_undefined_values_spread_and_reach_no_function():
    assert run(SHIFTED, "ab") == [None, "a"]
    assert run(SHIFTED + "!", "ab") == [None, "a!"]
    assert run(SequenceMap(lambda x, y: x + y, SHIFTED, tokens), "ab") == [None, "ab"]
    seen = []
    run(Map(seen.append, SHIFTED), "ab")
    assert seen == ["a"]


def test_undefined_keys_and_queries_select_nothing():
    assert run(Select(SHIFTED, tokens, Comparison.TRUE), "ab") == [[False, True], [False, True]]
    assert run(Select(tokens, SHIFTED, Comparison.TRUE), "ab") == [[False, False], [True, True]]


def test_aggregates_of_nothing_give_the_default():
    assert run(Aggregate(PREVIOUS, tokens, default="z"), "ab") == ["z", "a"]
    assert run(Aggregate(PREVIOUS, tokens), "ab") == [None, "a"]


def test_means():
    assert mean(["a", "a"]) == "a"
    assert mean([1, 3]) == 2
    assert mean([True, False]) == 0.5
    assert mean([0.1, 0.2]) == mean([0.2, 0.1]) == pytest.approx(0.15)
    assert [type(mean(values)) for values in ([3, 3], [1, 3], [1, 2], [2.0, 2.0])] == [int, int, float, float]
    assert mean([None, None]) is None
    with pytest.raises(UndefinedValue, match=r"the mean of \['a', 'b'\] does not exist"):
        mean(["a", "b", "a"])
    with pytest.raises(UndefinedValue):
        mean([None, 1])


def test_numerical_s_ops_take_one_form_of_each_number():
    values = run(rasp.numerical(Map(lambda t: {"a": True, "b": 2.0, "c": 0.5}[t], tokens)), "abc")
    assert values == [1, 2, 0.5]
    assert [type(value) for value in values] == [int, int, float]


def test_means_do_not_depend_on_the_order_of_the_values():
    values = [0.1 * i for i in range(20)]
    rng = np.random.default_rng(0)
    means = {mean(list(rng.permutation(values))) for _ in range(50)}
    assert len(means) == 1


def test_an_aggregate_over_different_words_is_undefined_and_says_where():
    with pytest.raises(UndefinedValue, match=r"'all' is undefined at position 0 of \['a', 'b'\]: the mean of"):
        run(Aggregate(EVERYTHING, tokens).named("all"), ["a", "b"])


def test_a_function_that_raises_is_named_with_its_arguments():
    program = Map(lambda x: 1 / x, tokens).named("inverse")
    with pytest.raises(UndefinedValue, match=r"'inverse' is undefined at position 1 .* ZeroDivisionError on 0"):
        run(program, [1, 0])
    selector = Select(tokens, tokens, Comparison.LT).named("smaller")
    with pytest.raises(UndefinedValue, match="its predicate raised TypeError on key 'a' and query 1"):
        run(selector, [1, "a"])


def test_select_best_takes_the_best_of_what_satisfies_the_predicate():
    latest = SelectBest(tokens, tokens, Comparison.EQ, indices)
    assert run(latest, "aba") == [[False, False, True], [False, True, False], [False, False, True]]
    assert run(latest, "aba", causal=True) == [[True, False, False], [False, True, False], [False, False, True]]
    assert run(Aggregate(latest, indices), "aba", causal=True) == [0, 1, 2]


def test_select_best_selects_all_that_tie_and_nothing_unscored():
    any_smallest = SelectBest(tokens, tokens, Comparison.TRUE, -1 * tokens)
    assert run(any_smallest, [2, 1, 1]) == [[False, True, True]] * 3
    assert run(SelectBest(tokens, tokens, Comparison.TRUE, SHIFTED), [5, 3]) == [[False, True]] * 2
    assert run(SelectBest(tokens, tokens, Comparison.FALSE, tokens), [1, 2]) == [[False, False]] * 2


def test_select_best_takes_a_score_of_key_and_query():
    nearest = SelectBest(tokens, tokens, Comparison.NEQ, lambda key, query: -abs(key - query))
    assert run(nearest, [1, 5, 4, 3]) == [
        [False, False, False, True], [False, False, True, False], [False, True, False, True],
        [False, False, True, False],
    ]  # fmt: skip
    assert run(nearest, [5, 4, 3], causal=True) == [[False] * 3, [True, False, False], [False, True, False]]
    first = SelectBest(tokens, indices, Comparison.TRUE, lambda key, query: None if key == "a" else (key, query))
    assert run(first, "abc") == [[False, False, True]] * 3
    assert run(first, "aa") == [[False, False]] * 2


def test_a_score_that_raises_is_named_with_its_key_and_query():
    inverse = SelectBest(tokens, tokens, Comparison.TRUE, lambda key, query: 1 / (key - query)).named("inverse")
    with pytest.raises(
        UndefinedValue, match=r"'inverse' .*: its score raised ZeroDivisionError on key 1 and query 1"
    ):
        run(inverse, [1, 2])


def test_where_needs_only_the_branch_that_it_takes():
    assert run(Where(indices == 0, tokens, SHIFTED), "ab") == ["a", "a"]
    assert run(Where(indices == 1, tokens, SHIFTED), "ab") == [None, "b"]
    assert run(Where(SHIFTED == "a", tokens, Full("z")), "ab") == [None, "b"]


def test_interventions_recompute_everything_downstream():
    position = (length - 1 - indices).named("target_pos")
    reverse = Aggregate(Select(indices, position, Comparison.EQ), tokens)
    assert run(reverse, "abc") == ["c", "b", "a"]
    assert run(reverse, "abc", set={"target_pos": [0, 0, 1]}) == ["a", "a", "b"]
    assert run(reverse, "abc", set={"tokens": ["x", "y", "z"]}) == ["z", "y", "x"]
    assert run(reverse, "abc", set={}) == ["c", "b", "a"]


def test_an_intervention_sets_every_copy_of_a_name():
    bit = (tokens == "a").named("bit")
    both = SequenceMap(lambda x, y: (x, y), bit, rasp.numerical(bit))
    assert run(both, "b", set={"bit": [True]}) == [(True, True)]


def test_interventions_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"'x'.*tokens, shifted"):
        run(Aggregate(Select(tokens, tokens, Comparison.EQ), tokens).named("shifted"), "a", set={"x": [1]})
    with pytest.raises(ValueError, match=r"'tokens'.* 2 .* 1"):
        run(tokens, "ab", set={"tokens": ["a"]})


def test_shared_expressions_are_evaluated_once():
    calls = []
    shared = Map(lambda x: calls.append(x) or 1, tokens)
    deep = shared
    for _ in range(30):
        deep = deep + deep
    assert run(deep, "a") == [2**30]
    assert calls == ["a"]
    assert len(expressions(deep)) == 32


def test_values_are_told_apart_by_their_type():
    assert len({value_key(v) for v in (True, 1, 1.0, "1", (1,), (True,))}) == 6


def test_numpy_scalars_become_plain_values():
    assert [type(v) for v in run(Map(np.sqrt, tokens), [4])] == [float]


def test_visibility():
    np.testing.assert_array_equal(visibility(2, True, None), [[1, 0], [1, 1]])
    np.testing.assert_array_equal(visibility(2, False, np.eye(3, dtype=bool)), [[1, 0], [0, 1]])


def test_only_expressions_can_be_run():
    with pytest.raises(TypeError, match="RASP expression"):
        run(rasp.SOp(), "a")
