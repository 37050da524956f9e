import itertools

import pytest

from rasplens.compile.frontend.selector_formula import (
    And,
    Atom,
    Not,
    conjunction,
    conjuncts,
    holds,
    negation,
    ordered,
    sources,
    together,
)

EQUAL = Atom(0, 0, lambda key, query: key == query)
LARGER = Atom(0, 0, lambda key, query: key > query)
OTHER = Atom(1, 2, lambda key, query: key == query)


@pytest.mark.parametrize(
    "formula",
    [
        EQUAL,
        Not(EQUAL),
        Not(Not(EQUAL)),
        And((EQUAL, OTHER)),
        And((EQUAL, And((LARGER, Not(OTHER))))),
        Not(And((Not(EQUAL), Not(OTHER)))),
    ],
)
def test_the_conjuncts_together_are_the_formula(formula):
    parts = together(conjuncts(formula))
    for values in itertools.product((None, 1, 2), repeat=4):
        keys, queries = {0: values[0], 1: values[1]}, {0: values[2], 2: values[3]}
        assert holds(ordered(formula), keys, queries) == all(holds(ordered(part), keys, queries) for part in parts)


def test_undefined_values_satisfy_no_predicate_but_its_negation():
    anything = Atom(0, 0, lambda key, query: True)
    assert not holds(ordered(anything), {0: None}, {0: 1})
    assert holds(ordered(Not(anything)), {0: None}, {0: 1})
    assert holds(ordered(anything), {0: 1}, {0: 1})


def test_formulas_about_the_same_variables_are_joined():
    assert len(together([EQUAL, OTHER, LARGER])) == 2
    assert sources(ordered(together([EQUAL, LARGER])[0])) == [(0, 0), (0, 0)]


def test_two_negations_cancel():
    both = conjunction([EQUAL, OTHER])
    assert negation(negation(both)) is both
    assert conjuncts(conjunction([both, LARGER])) == (EQUAL, OTHER, LARGER)


def test_every_predicate_is_asked_since_any_may_raise():
    asked = []
    never = Atom(0, 0, lambda key, query: asked.append((key, query)))
    assert not holds(ordered(And((Not(EQUAL), never))), {0: 1}, {0: 1})
    assert asked == [(1, 1)]


def test_shared_formulas_are_visited_once():
    """Twenty steps of two uses each are a million paths."""
    asked = []
    formula = Atom(0, 0, lambda key, query: bool(asked.append(0)))
    for _ in range(20):
        formula = negation(conjunction([formula, negation(formula)]))
    parts = ordered(formula)
    assert len(parts) <= 1 + 3 * 20
    assert sources(parts) == [(0, 0)]
    assert holds(parts, {0: 1}, {0: 1})
    assert len(asked) == 1


def test_a_conjunction_names_each_formula_once():
    formula = EQUAL
    for _ in range(40):
        formula = conjunction([formula, formula])
    assert formula.parts == (EQUAL,)


def test_depth_is_no_limit():
    formula = EQUAL
    for _ in range(5_000):
        formula = Not(And((formula, LARGER)))
    assert len(ordered(formula)) == 2 + 2 * 5_000
    assert together([formula]) == [formula]
