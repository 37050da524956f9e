import numpy as np
import pytest
from rasp_examples import EQUAL, EVERYTHING, PREVIOUS

from rasplens.compile import CompileError, CompileLimits, compile_program, verify
from rasplens.compile.analysis import independent_values as module
from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.ir import Domain, FiniteGraph, PredicateNode, SelectorNode
from rasplens.compile.limits import DEFAULT_LIMITS
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    LinearSequenceMap,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    SOp,
    Where,
    categorical,
    indices,
    numerical,
    tokens,
)
from rasplens.compile.rasp.input_space import input_space

EQ = Comparison.EQ
FLOATS = numerical(Map(lambda t: [0.0, 0.3, 0.1 + 0.2][t], tokens))


def analyse(program: SOp, vocab=(0, 1, 2), max_len=3, limits=DEFAULT_LIMITS, **options) -> FiniteGraph:
    return reachable_values(build_graph(program), input_space(vocab, max_len, **options), limits)


def domain(program: SOp, *args, **options) -> Domain:
    finite = analyse(program, *args, **options)
    return finite.nodes[finite.output].domain


def test_values_by_construction():
    assert domain(tokens).values == (0, 1, 2)
    assert domain(indices, max_len=4).values == (0, 1, 2, 3)
    assert domain(tokens + indices).values == (0, 1, 2, 3, 4)
    assert domain(Map(lambda t: t % 2, tokens)).values == (0, 1)
    assert domain(SelectorWidth(EVERYTHING)).values == (3, 2, 1)
    assert domain(numerical(SelectorWidth(EVERYTHING))).values == (1, 2, 3)
    anything = Select(tokens, indices, Comparison.LT)
    assert domain(SelectorWidth(anything)).values == (3, 2, 1, 0)
    assert domain(Where(tokens == 5, indices, tokens + 7)).values == (7, 8, 9)
    assert domain(numerical(LinearSequenceMap(tokens, indices, 1, -2))).values == (-4, -3, -2, -1, 0, 1, 2)


def test_means_are_reached_exactly():
    bit = numerical(tokens == 1)
    mean = domain(numerical(Aggregate(EVERYTHING, bit)), max_len=3)
    assert mean.values == (0, 1 / 3, 0.5, 2 / 3, 1)
    assert not mean.is_partial


def test_types_keep_values_apart_only_in_categorical_variables():
    program = Map(lambda t: {0: True, 1: 1, 2: 1.0}[t], tokens)
    assert domain(program).values == (True, 1, 1.0)
    assert domain(numerical(program)).values == (1,)
    assert type(domain(numerical(program)).values[0]) is int


def test_numbers_are_added_exactly():
    """In floats, a third less one and nothing less two thirds are two numbers."""
    third = numerical(Map(lambda t: [1 / 3, 0.0, 1.0][t], tokens))
    other = numerical(Map(lambda t: [1.0, 2 / 3, 0.0][t], tokens))
    assert 1 / 3 - 1 != 0 - 2 / 3
    difference = numerical(LinearSequenceMap(third, other, 1, -1))
    assert domain(difference).values == (-1, -2 / 3, -1 / 3, 0, 1 / 3, 1)


def test_numbers_that_rounding_tells_apart_are_two():
    assert domain(numerical(LinearSequenceMap(FLOATS, tokens, 1, 0))).values == (0, 0.3, 0.1 + 0.2)


def test_undefined_values_are_tracked():
    shifted = Aggregate(PREVIOUS, tokens)
    assert domain(shifted).is_partial
    assert domain(shifted + 1).is_partial
    assert not domain(Aggregate(PREVIOUS, tokens, default=7)).is_partial
    assert domain(Aggregate(PREVIOUS, tokens, default=7)).values == (0, 1, 2, 7)
    assert not domain(Aggregate(EQUAL, tokens)).is_partial
    assert domain(Map(lambda t: None if t == 1 else t, tokens)).is_partial
    assert not domain(Where(tokens == 5, shifted, tokens)).is_partial


def test_tables_hold_codes_with_a_place_for_undefined():
    finite = analyse(SequenceMap(lambda x, y: x + y if y else None, tokens, indices))
    table = finite.nodes[finite.output].table
    assert table.shape == (4, 4)
    np.testing.assert_array_equal(table[:, 0], -1)
    np.testing.assert_array_equal(table[-1], -1)
    sums = finite.nodes[finite.output].domain.values
    assert [[sums[code] for code in row] for row in table[:3, 1:3]] == [[1, 2], [2, 3], [3, 4]]


def test_predicates_become_tables_of_key_and_query():
    finite = analyse(SelectorWidth(Select(tokens, indices, Comparison.LT)))
    np.testing.assert_array_equal(finite.nodes[2].table, np.pad([[0, 1, 1], [0, 0, 1], [0, 0, 0]], (0, 1)))


def test_a_negation_selects_what_is_undefined():
    finite = analyse(SelectorWidth(~Select(Aggregate(PREVIOUS, tokens), tokens, Comparison.EQ)))
    match = next(node for node in finite.nodes if isinstance(node, PredicateNode) and node.table[-1].any())
    np.testing.assert_array_equal(match.table, np.pad(1 - np.pad(np.eye(3), ((0, 1), (0, 0))), ((0, 0), (0, 1))))


def test_what_follows_from_length_and_position_is_known_exactly():
    """Targets of a reversal: no combination of a length and a position that is not in it."""
    length = SelectorWidth(EVERYTHING)
    target = analyse(length - 1 - indices)
    node = target.nodes[target.output]
    assert sorted(node.values) == [0, 1, 2]
    got = [[node.values[code] for code in row[: n + 1]] for n, row in enumerate(node.by_layout)]
    assert got == [[0], [1, 0], [2, 1, 0]]


def test_combinations_on_which_a_function_fails_are_left_out():
    assert domain(1 / tokens).values == (1.0, 0.5)
    assert domain(1 / tokens).is_partial


def test_a_variable_only_ever_meets_itself_at_its_own_value():
    assert domain(SequenceMap(lambda x, y: (x, y), tokens, tokens)).values == ((0, 0), (1, 1), (2, 2))


def test_a_function_is_called_twice_per_combination():
    calls = []
    program = SequenceMap(lambda x, y: calls.append((x, y)) or 1, tokens, indices)
    analyse(program)
    assert len(calls) == 2 * 9


def test_a_branch_that_is_never_chosen_may_be_anything():
    never = Map(lambda t: t == 7, tokens)
    assert domain(numerical(Where(never, Map(str, tokens), indices))).values == (0, 1, 2)
    assert domain(numerical(Where(Map(lambda t: t < 7, tokens), indices, Map(str, tokens)))).values == (0, 1, 2)


def test_rows_that_see_nothing_fall_back_on_the_default():
    mask = np.tri(3, k=-1, dtype=bool)
    everything = Aggregate(Select(tokens, tokens, Comparison.TRUE), numerical(tokens * 1))
    finite = analyse(numerical(everything), mask=mask)
    assert finite.nodes[finite.output].domain.is_partial
    assert finite.nodes[finite.output].fallbacks == (None,)
    assert not any(node.may_be_empty for node in finite.nodes if isinstance(node, SelectorNode))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: numerical(Map(str, tokens)).named("n"),
            r"'n'.*numerical\(\.\.\.\).*'0'",
        ),
        (
            lambda: numerical(Aggregate(EQUAL, Map(str, tokens))),
            r"'aggregate'.*numerical\(\.\.\.\).*'0'",
        ),
        (
            lambda: numerical(LinearSequenceMap(Map(str, tokens), tokens, 1, 1)),
            "numbers.*'map'.*'0'",
        ),
        (lambda: Map(lambda t: None, tokens).named("never"), "'never' is undefined"),
        (lambda: Map(lambda t: [t], tokens).named("list"), r"'list' returned \[0\].*type list"),
        (lambda: Map(lambda t: t.upper(), tokens).named("up"), "function.*'up'.*AttributeError"),
        (lambda: SelectorWidth(Select(tokens, tokens, lambda k, q: k.x)), "predicate.*AttributeError"),
        (lambda: Map(lambda t: tokens, tokens), "returned <TokensType>"),
        (
            lambda: numerical(Map(lambda t: 1e39 * t, tokens)).named("n"),
            "'n'.*1e[+]39.*weight",
        ),
        (
            lambda: numerical(Map(lambda t: float("nan"), tokens)),
            "returned nan.*type float",
        ),
        (lambda: Map(lambda t: (1, float("nan")), tokens), r"returned \(1, nan\).*type tuple"),
        (lambda: numerical(Map(lambda t: float("inf"), tokens)), "inf.*weight"),
        (
            lambda: Map(lambda t, calls=[]: calls.append(0) or len(calls), tokens),
            "deterministic.* 0 .* 1,",
        ),
        (lambda: numerical(LinearSequenceMap(tokens, tokens, None, 1)), "factor.*None"),
        (
            lambda: Aggregate(SelectBest(tokens, tokens, EQ, Map(lambda t: [1, "x", 2][t], tokens)), tokens),
            "scores of 'select_best'.*order",
        ),
        (
            lambda: Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, lambda k, q: "x" if k else q), tokens),
            "scores of 'select_best'.*order",
        ),
        (
            lambda: Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, lambda k, q: float("nan")), tokens),
            "'select_best' returned nan",
        ),
        (
            lambda: Aggregate(SelectBest(tokens, tokens, Comparison.EQ, lambda k: k), tokens),
            "score of 'select_best'.*TypeError",
        ),
    ],
)
def test_programs_without_a_finite_meaning_are_refused(build, message):
    with pytest.raises(CompileError, match=message):
        analyse(build())


def test_too_many_combinations_are_refused_by_name():
    for program in (
        SequenceMap(max, tokens, indices).named("pairs"),
        SelectorWidth(Select(tokens, indices, Comparison.EQ).named("pairs")),
        numerical(LinearSequenceMap(tokens, indices, 1, 1)).named("pairs"),
    ):
        with pytest.raises(CompileError, match=r"'pairs'.* 3 and 3 values.* 8 .*max_combinations"):
            analyse(program, limits=CompileLimits(max_combinations=8))


def test_too_many_values_are_refused_by_name():
    limits = CompileLimits(max_values=5)
    with pytest.raises(CompileError, match=r"'sum'.* 5 values"):
        analyse((tokens + 10 * indices).named("sum"), limits=limits)
    with pytest.raises(CompileError, match=r"'mean'.* 5 values"):
        analyse(numerical(Aggregate(EVERYTHING, numerical(tokens * tokens))).named("mean"), limits=limits)


def same_mean(of):
    return categorical(numerical(Aggregate(Select(tokens, tokens, Comparison.EQ), numerical(of))))


def test_large_tables_hold_what_occurs_where_the_inputs_are_few():
    """Over all pairs of values this program has more than a variable may have; its inputs are 1,092."""
    called = set()

    def product(x, y):
        called.add((x, y))
        return round(x * y, 3)

    means, squares = same_mean(indices), same_mean(Map(lambda i: i * i, indices))
    others = categorical(numerical(Aggregate(Select(tokens, tokens, Comparison.NEQ), numerical(indices), 0)))
    difference = SequenceMap(lambda x, y: round(x - y, 3), means, others)
    compiled = compile_program(SequenceMap(product, difference, squares), "abc", 6)
    assert len(called) < 1_000
    assert verify(compiled).ok


def test_many_inputs_are_not_run(monkeypatch):
    monkeypatch.setattr(module, "_occurring", lambda *given: pytest.fail("they are run"))
    monkeypatch.setattr(module, "MANY", -1)
    program = SequenceMap(lambda x, y: x + y, tokens, indices)
    compile_program(program, range(3), 3, limits=CompileLimits(executed_inputs=10))


def test_a_linear_form_of_one_variable_meets_equal_values_alone():
    """As pairs of independent values they would be 2,049 after twelve steps."""
    total = numerical(tokens)
    for _ in range(12):
        total = numerical(LinearSequenceMap(total, total, 1, 1))
    assert domain(total, (0, 1)).values == (0, 2**12)
