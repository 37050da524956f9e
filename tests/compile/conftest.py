"""One table of programs, which every test of agreement goes through: fixtures `case` and `compiled`."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from rasp_examples import BACK, EQUAL, EVERYTHING, HIST, PREVIOUS, SHIFTED

from rasplens.compile import CompiledModel, compile_program, rasp
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
    SOp,
    Where,
    categorical,
    indices,
    length,
    numerical,
    tokens,
)


@dataclass(frozen=True)
class Case:
    """A program and an input space small enough to try all of it."""

    program: SOp
    vocab: tuple[Any, ...] = ("a", "b", "c")
    max_len: int = 4
    options: dict[str, Any] = field(default_factory=dict)
    name: str = ""


PLACED = SequenceMap(lambda token, index: (token, index), tokens, indices).named("placed")


def scored(key: str, query: int) -> int:
    """By a table, as programs do that are learned by gradient."""
    return {"a": (0, 2, 1, 1), "b": (3, 2, 0, 1), "c": (1, 0, 5, 1)}[key][query]


def frac_prevs(sop: SOp) -> SOp:
    return numerical(Aggregate(Select(indices, indices, Comparison.LEQ), numerical(sop), default=0))


def sort_unique(keys: SOp, values: SOp) -> SOp:
    target = SelectorWidth(Select(keys, keys, Comparison.LT)).named("target_pos")
    return Aggregate(Select(target, indices, Comparison.EQ), values)


def strictly_left() -> np.ndarray:
    return np.tri(4, k=-1, dtype=bool)


def pair_balance() -> SOp:
    return numerical(LinearSequenceMap(frac_prevs(tokens == "("), frac_prevs(tokens == ")"), 1, -1))


CASES: dict[str, Callable[[], Case]] = {
    "tokens": lambda: Case(tokens),
    "indices": lambda: Case(indices),
    "length": lambda: Case(length),
    "constant": lambda: Case(Full("z")),
    "constant numbers": lambda: Case(numerical(Full(2.5))),
    "constants by position": lambda: Case(ConstantSOp([3, 1, 4, 1], check_length=False)),
    "map": lambda: Case(Map(str.upper, tokens)),
    "map of map": lambda: Case((indices + 1) * 2),
    "typed values": lambda: Case(Map(lambda t: {"a": True, "b": 1, "c": 1.0}[t], tokens)),
    "tuples": lambda: Case(SequenceMap(lambda x, y: (x, y), tokens, indices), max_len=3),
    "hist": lambda: Case(HIST),
    "hist causal": lambda: Case(HIST, options={"causal": True}),
    "hist as a number": lambda: Case(numerical(HIST)),
    "reverse": lambda: Case(Aggregate(Select(indices, length - 1 - indices, Comparison.EQ), tokens)),
    "shift": lambda: Case(SHIFTED),
    "shift with a default": lambda: Case(Aggregate(PREVIOUS, tokens, default="z")),
    "shift of a shift with a default": lambda: Case(Aggregate(PREVIOUS, Aggregate(PREVIOUS, tokens, default="z"))),
    "two defaults": lambda: Case(Aggregate(PREVIOUS, Aggregate(PREVIOUS, tokens, default="z"), default="a")),
    "shift of numbers": lambda: Case(numerical(Aggregate(PREVIOUS, numerical(tokens == "a")))),
    "numbers with a default": lambda: Case(numerical(Aggregate(PREVIOUS, numerical(indices * 1), default=-3))),
    "categorical mean of numbers": lambda: Case(Aggregate(EQUAL, numerical(indices * 1))),
    "frac_prevs": lambda: Case(frac_prevs(tokens == "a")),
    "frac_prevs causal": lambda: Case(frac_prevs(tokens == "a"), options={"causal": True}),
    "pair balance": lambda: Case(pair_balance(), vocab=("(", ")", "x")),
    "balance is negative": lambda: Case(pair_balance() < 0, vocab=("(", ")", "x")),
    "sort_unique of words": lambda: Case(sort_unique(tokens, Map(str, tokens)), vocab=(1, 2, 3), max_len=3),
    "numerical tokens": lambda: Case(numerical(tokens), vocab=(3, 1, 2)),
    "numerical indices in a selector": lambda: Case(
        Aggregate(Select(numerical(indices), numerical(indices), Comparison.EQ), tokens)
    ),
    "widths of numbers": lambda: Case(SelectorWidth(Select(numerical(HIST), HIST, Comparison.LEQ))),
    "sequence map of number and class": lambda: Case(
        SequenceMap(lambda x, y: f"{x}{y}", numerical(HIST), tokens), max_len=3
    ),
    "undefined in a sequence map": lambda: Case(SequenceMap(lambda x, y: x == y, SHIFTED, tokens)),
    "undefined keys": lambda: Case(SelectorWidth(Select(SHIFTED, tokens, Comparison.EQ))),
    "undefined queries": lambda: Case(SelectorWidth(Select(tokens, SHIFTED, Comparison.TRUE))),
    "linear form of classes": lambda: Case(LinearSequenceMap(indices, HIST, 2, -1)),
    "linear form of a partial number": lambda: Case(
        numerical(LinearSequenceMap(numerical(Aggregate(PREVIOUS, numerical(indices + 1))), HIST, 1, 0.5))
    ),
    "and over one pair": lambda: Case(SelectorWidth(EQUAL & Select(tokens, tokens, Comparison.LEQ))),
    "and over two pairs": lambda: Case(SelectorWidth(EQUAL & BACK)),
    "and over three pairs": lambda: Case(SelectorWidth(EQUAL & BACK & Select(indices, HIST, Comparison.NEQ))),
    "and under an aggregate": lambda: Case(Aggregate(EQUAL & PREVIOUS, tokens)),
    "or": lambda: Case(SelectorWidth(EQUAL | Select(tokens, tokens, Comparison.LT))),
    "not": lambda: Case(SelectorWidth(~EQUAL)),
    "not causal": lambda: Case(SelectorWidth(~EQUAL), options={"causal": True}),
    "nothing is ever selected": lambda: Case(
        Where(tokens == "a", tokens, Aggregate(Select(tokens, tokens, Comparison.FALSE), tokens))
    ),
    "constant selector": lambda: Case(
        SelectorWidth(ConstantSelector([[1, 0], [1, 1], [0, 1]], check_length=False) & EVERYTHING), max_len=2
    ),
    "select best": lambda: Case(
        Aggregate(SelectBest(tokens, tokens, Comparison.GT, -1 * tokens), tokens),
        vocab=(0, 1, 2),
        options={"causal": True},
    ),
    "select best by position": lambda: Case(
        Aggregate(SelectBest(tokens, tokens, Comparison.EQ, indices), indices), options={"causal": True}
    ),
    "select best with ties": lambda: Case(
        numerical(Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, HIST), numerical(indices * 1)))
    ),
    "select best with undefined scores": lambda: Case(
        Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, Aggregate(PREVIOUS, indices)), indices)
    ),
    "select best of key and query": lambda: Case(
        numerical(
            Aggregate(
                SelectBest(tokens, tokens, Comparison.NEQ, lambda k, q: -abs(k - q)),
                numerical(indices * 1),
                default=9,
            )
        ),
        vocab=(0, 1, 3),
    ),
    "select the nearest match": lambda: Case(
        Aggregate(
            SelectBest(
                PLACED, PLACED, lambda k, q: k[0] == q[0] and k != q, lambda k, q: (-abs(k[1] - q[1]), -k[1])
            ),
            indices,
            default="none",
        ),
        vocab=("a", "b"),
    ),
    "select best of key and query with ties": lambda: Case(
        numerical(Aggregate(SelectBest(tokens, indices, Comparison.TRUE, scored), numerical(indices * 1)))
    ),
    "select best of key and query, unscored": lambda: Case(
        Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, lambda k, q: ord(k) if k < q else None), tokens),
        options={"causal": True},
    ),
    "counts of the best of key and query": lambda: Case(
        SelectorWidth(~SelectBest(tokens, indices, Comparison.TRUE, scored) & BACK), max_len=3
    ),
    "remainders and quotients": lambda: Case(7 % (indices + 1) + -indices % 3 + indices // 2 + 5 // (HIST + 1)),
    "numbers without a sign": lambda: Case(numerical(abs(indices - HIST))),
    "where with a constant": lambda: Case(Where(tokens == "a", "z", tokens)),
    "where with a constant number": lambda: Case(numerical(Where(HIST == 1, numerical(HIST), 0.5))),
    "induction": lambda: Case(
        Aggregate(SelectBest(SHIFTED, tokens, Comparison.EQ, indices), tokens), options={"causal": True}
    ),
    "where": lambda: Case(Where(tokens == "a", tokens, Map(str.upper, tokens))),
    "where with an undefined branch": lambda: Case(Where(indices == 0, tokens, SHIFTED)),
    "where with an undefined condition": lambda: Case(Where(SHIFTED == "a", tokens, Full("z"))),
    "where of numbers": lambda: Case(numerical(Where(HIST == 1, numerical(HIST), indices))),
    "silent rows": lambda: Case(
        numerical(Aggregate(EVERYTHING, numerical(indices * 1))), options={"mask": strictly_left()}
    ),
    "silent rows with a default": lambda: Case(
        numerical(Aggregate(EVERYTHING, numerical(indices * 1), default=9)), options={"mask": strictly_left()}
    ),
    "a bos that is not needed": lambda: Case(Aggregate(EQUAL, tokens), options={"bos": True}),
    "deep sharing": lambda: Case(shared_sum(), vocab=("a", "b"), max_len=2),
    "categorical copy of a number": lambda: Case(categorical(numerical(HIST) + 1)),
}


def shared_sum() -> SOp:
    total = HIST
    for _ in range(6):
        total = Map(lambda pair: pair[0] + pair[1], SequenceMap(lambda x, y: (x, y), total, total))
    return rasp.annotate(total, name="total")


@pytest.fixture(params=CASES)
def case(every_case, request) -> Case:
    return every_case[request.param]


@pytest.fixture(scope="session")
def every_case() -> dict[str, Case]:
    return {name: replace(make(), name=name) for name, make in CASES.items()}


@pytest.fixture(scope="session")
def compiled_case(every_case) -> Callable[..., CompiledModel]:
    """The model of a case by name, compiled once for all tests."""

    @cache
    def build(name: str, optimize: bool) -> CompiledModel:
        case = every_case[name]
        program = rasp.causal(case.program)
        return compile_program(program, case.vocab, case.max_len, optimize=optimize, **case.options)

    return build


@pytest.fixture(params=[True, False], ids=["small", "plain"])
def compiled(case, compiled_case, request) -> CompiledModel:
    """Every program twice: optimised, and with directions and parts of its own for every s-op."""
    return compiled_case(case.name, optimize=request.param)
