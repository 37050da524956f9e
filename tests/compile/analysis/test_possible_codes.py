import numpy as np
from rasp_examples import BACK

from rasplens.compile.analysis.possible_codes import possible_codes
from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.rasp import Aggregate, Map, SequenceMap, tokens
from rasplens.compile.rasp.input_space import input_space


def possible(program, variable, known, values) -> set:
    """What a variable can be where a known one is among some values."""
    finite = reachable_values(build_graph(program), input_space([1, 2, "BOS"], 3))
    at, other = finite.names[variable], finite.names[known]
    node, given = finite.variable(at), finite.variable(other)
    among = np.array([value in values for value in (*given.values, None)])
    codes = np.flatnonzero(possible_codes(finite.nodes, at, other, among))
    return {(*node.values, None)[code] for code in codes}


IS_BOS = Map(lambda token: token == "BOS", tokens).named("is_bos")
PAIR = SequenceMap(lambda token, before: (token, before), tokens, Aggregate(BACK, IS_BOS).named("before"))
PAIR = PAIR.named("pair")


def test_a_function_is_followed_backwards():
    assert possible(IS_BOS, "tokens", "is_bos", {False}) == {1, 2}
    assert possible(IS_BOS, "tokens", "is_bos", {True}) == {"BOS"}
    assert possible(IS_BOS, "is_bos", "tokens", {1}) == {False}


def test_a_function_of_two_is_followed_to_both_and_forwards():
    assert possible(PAIR, "tokens", "pair", {("BOS", True), (2, True)}) == {"BOS", 2}
    assert possible(PAIR, "is_bos", "pair", {("BOS", True)}) == {True}
    assert possible(PAIR, "before", "pair", {("BOS", True), (2, False)}) == {True, False}


def test_what_attention_gathers_follows_from_nothing_at_its_own_position():
    assert possible(PAIR, "before", "tokens", {1}) == {True, False, None}


def test_what_is_undefined_is_followed_too():
    """Once, a function that is not asked of undefined values was taken never to meet them."""
    halves = Map(lambda token: None if token == 1 else token, tokens).named("halves")
    program = Map(lambda value: value, halves).named("same")
    assert possible(program, "same", "tokens", {1}) == {None}
    assert possible(program, "same", "tokens", {1, 2}) == {None, 2}
    assert possible(program, "tokens", "same", {None}) == {1}
    two = SequenceMap(lambda token, half: half, tokens, halves).named("two")
    assert possible(two, "two", "tokens", {1, "BOS"}) == {None, "BOS"}
    assert possible(two, "tokens", "two", {None}) == {1}
