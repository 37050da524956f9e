"""One selector of two variables as two selectors of one each."""

from itertools import product

import numpy as np
import pytest
from explaining_samples import sample_of

from rasplens.compare.explaining.selectors.kinds import Told
from rasplens.compare.explaining.selectors.split import split
from rasplens.compile import programs, rasp
from rasplens.compile.rasp import SelectorWidth
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter

MET = [*product("abc", range(4))]
"""Tokens at places."""


def before(k, q):
    return k <= q


def higher(k, q):
    return k >= q and k != "b"


def both(k, q):
    return higher(k[0], q[0]) and before(k[1], q[1])


def either(k, q):
    return higher(k[0], q[0]) or before(k[1], q[1])


def only_one(k, q):
    return higher(k[0], q[0]) != before(k[1], q[1])


def each_by_the_token(k, q):
    return higher(k[0], q) and k[1] <= "abc".index(q)


def found(inputs, relation, queries):
    tokens, indices = inputs.primitives()
    pair = inputs.define(
        "pair", "rasp.SequenceMap(lambda x, y: (x, y), rasp.tokens, rasp.indices)", (tokens,), 1.0
    )
    read = (tokens, indices) if queries == MET else (tokens,)
    alone = [one if queries == MET else (one,) for one in queries]
    key = Told(pair, (tokens, indices), {one: place for place, one in enumerate(MET)})
    query = Told(pair, read, {one: place for place, one in enumerate(alone)})
    selected = np.array([[relation(k, q) for k in MET] for q in queries])
    return list(split(inputs, "l0h0", key, query, selected)), pair


@pytest.mark.parametrize("relation", [both, either, each_by_the_token])
def test_two_selectors_select_the_same(relation):
    _, inputs = sample_of(programs.histogram())
    candidates, pair = found(inputs, relation, [*"abc"] if relation is each_by_the_token else MET)
    assert candidates
    query = rasp.tokens if relation is each_by_the_token else pair.expr
    wanted = SelectorWidth(rasp.Select(pair.expr, query, relation))
    for one in candidates:
        names = {"rasp": rasp, **{read.name: read.expr for read in one.reads}}
        for program in (SelectorWidth(eval(one.text, names)), wanted):
            reader = BatchInterpreter(program, inputs.task.vocab, inputs.task.visible)
            ((_, matrix),), _ = reader.selections(inputs.ids)
            np.testing.assert_array_equal(matrix, one.matrix)


def test_what_is_neither_both_nor_one_of_two_is_not_split():
    _, inputs = sample_of(programs.histogram())
    assert found(inputs, only_one, MET)[0] == []
