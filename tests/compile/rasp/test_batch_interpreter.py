"""The interpreter of batches says what the plain one says; random programs are held against both by `verify`."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rasplens.compile import UndefinedValue, run
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Full,
    LinearSequenceMap,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    Where,
    batch_interpreter,
    indices,
    length,
    numerical,
    programs,
    tokens,
)
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter, Evaluated
from rasplens.compile.rasp.interpreter import every_value
from rasplens.compile.rasp.values import value_key

EVERYTHING = Select(tokens, tokens, Comparison.TRUE)
SAME = Select(tokens, tokens, Comparison.EQ)
EARLIER = Select(indices, indices, Comparison.LEQ)
WORDS = Map(lambda t: "xyz"[t], tokens)


def both(program, vocab, ids, visible=None):
    """What each of the interpreters says on each sequence: keys of values, None where the program is undefined."""
    ids = np.asarray(ids)
    visible = np.ones((ids.shape[1],) * 2, dtype=bool) if visible is None else visible
    tables = BatchInterpreter(program, vocab, visible)
    codes, fails = tables(ids)
    at_once = [
        None if failed else [value_key(tables.values[code]) for code in row]
        for row, failed in zip(codes, fails, strict=True)
    ]
    return at_once, [plainly(program, [vocab[i] for i in row], visible) for row in ids]


def plainly(program, sequence, visible):
    try:
        return [value_key(value) for value in run(program, sequence, mask=visible)]
    except UndefinedValue:
        return None


def some_ids(n_tokens: int, n_pos: int, n: int = 60):
    return np.random.default_rng(0).integers(n_tokens, size=(n, n_pos))


LIBRARY = {
    "reverse": (programs.reverse(), range(5)),
    "histogram": (programs.histogram(), range(5)),
    "sort": (programs.sort(), range(5)),
    "induction": (programs.induction(), range(5)),
    "share": (
        Aggregate(Select(indices, indices, Comparison.LEQ), numerical(Map(lambda t: t == 2, tokens))),
        range(5),
    ),
    "mean of numbers": (Aggregate(EVERYTHING, numerical(tokens)), [0, 1, 7, 0.1, 1 / 3]),
    "latest": (SelectBest(tokens, tokens, Comparison.EQ, indices), range(3)),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_it_says_what_the_plain_interpreter_says(name):
    program, vocab = LIBRARY[name]
    if isinstance(program, SelectBest):
        program = Aggregate(program, indices, 9)
    vocab = list(vocab)
    for visible in (None, np.tri(9, dtype=bool), np.random.default_rng(1).random((9, 9)) > 0.5):
        at_once, each = both(program, vocab, some_ids(len(vocab), 9), visible)
        assert at_once == each


EDGES = {
    "functions that raise": Map(lambda t: 1 / t, tokens),
    "a predicate that raises on some pairs": SelectorWidth(Select(tokens, indices, lambda k, q: q / k > 1)),
    "the second half of an or that raises": SelectorWidth(
        EVERYTHING | Select(tokens, tokens, lambda k, q: 1 / k > 0)
    ),
    "means of words": Aggregate(SAME, WORDS),
    "means of different words": Aggregate(EVERYTHING, WORDS),
    "means of None and numbers": Aggregate(EVERYTHING, Map(lambda t: None if t == 1 else t, tokens)),
    "means of True and 1": Aggregate(EVERYTHING, Map(lambda t: (True, 1, 1.0)[t], tokens)),
    "means of zeros of either sign": Aggregate(EVERYTHING, Map(lambda t: (0.0, -0.0, 0)[t], tokens)),
    "defaults": Aggregate(Select(tokens, Full(7), Comparison.EQ), tokens, 1 / 3),
    "a default of a number": numerical(Aggregate(Select(tokens, Full(7), Comparison.EQ), numerical(tokens), True)),
    "branches": Where(Map(lambda t: (None, "", "a")[t], tokens), indices, Full(True)),
    "branches that are numbers": numerical(Where(Map(bool, tokens), Full(2.0), Full(False))),
    "lengths": SequenceMap(lambda n, i: n - i, length, indices),
    "linear forms": numerical(LinearSequenceMap(numerical(tokens), numerical(indices), 0.1, 1 / 3)),
    "linear forms of classes": LinearSequenceMap(tokens, indices, 2, 3),
    "best of equal scores": Aggregate(
        SelectBest(tokens, tokens, Comparison.TRUE, Map(lambda t: (1, True, 1.0)[t], tokens)), indices
    ),
    "best of words": Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, WORDS), tokens),
    "best of words and numbers": Aggregate(
        SelectBest(tokens, tokens, Comparison.EQ, Map(lambda t: ("x", 1, 2)[t], tokens)), tokens
    ),
    "best of some that cannot be compared": Aggregate(
        SelectBest(tokens, tokens, Comparison.TRUE, Map(lambda t: ("x", 1, 2)[t], tokens)), tokens
    ),
    "best of nan": Aggregate(
        SelectBest(tokens, tokens, Comparison.TRUE, Map(lambda t: (math.nan, 1, 2)[t], tokens)), tokens
    ),
    "best where scores are undefined": Aggregate(
        SelectBest(tokens, tokens, Comparison.TRUE, Map(lambda t: None if t else 1, tokens)), tokens, "none"
    ),
    "best by a score of key and query": Aggregate(
        SelectBest(tokens, tokens, Comparison.TRUE, lambda k, q: -abs(k - q)), indices
    ),
    "nearest by a score of two positions": Aggregate(
        SelectBest(indices, indices, Comparison.NEQ, lambda k, q: (-abs(k - q), k)), tokens, "none"
    ),
    "best where scores of key and query are undefined": Aggregate(
        SelectBest(tokens, indices, Comparison.NEQ, lambda k, q: None if k == 1 else k - q), tokens, "none"
    ),
    "best by a score that raises": Aggregate(
        SelectBest(tokens, tokens, Comparison.TRUE, lambda k, q: 1 / (k + q)), indices
    ),
    "best by a score that raises only where the predicate fails": Aggregate(
        SelectBest(tokens, tokens, lambda k, q: k + q > 0, lambda k, q: 1 / (k + q)), indices
    ),
    "best by scores of key and query that cannot be compared": Aggregate(
        SelectBest(tokens, tokens, Comparison.TRUE, lambda k, q: ("x", 1, 2)[k] if q else k), tokens
    ),
    "best by a score of key and query that is nan": Aggregate(
        SelectBest(tokens, tokens, Comparison.TRUE, lambda k, q: math.nan if k > q else k), tokens
    ),
    "negations": SelectorWidth(~SAME & ~Select(indices, indices, Comparison.LT)),
    "values that cannot be hashed": Map(len, Map(lambda t: [t] * t, tokens)),
    "large numbers": Map(lambda t: 10**18 + t, tokens),
}


@pytest.mark.parametrize("name", EDGES)
def test_it_says_so_at_the_edges_too(name):
    for n_pos in (1, 2, 4):
        at_once, each = both(EDGES[name], [0, 1, 2], some_ids(3, n_pos, 30), np.tri(n_pos, dtype=bool))
        assert at_once == each


@pytest.mark.parametrize("name", [*LIBRARY, *EDGES])
def test_it_selects_what_the_plain_interpreter_selects(name):
    program, vocab = LIBRARY[name] if name in LIBRARY else (EDGES[name], range(3))
    program = Aggregate(program, indices, 9) if isinstance(program, SelectBest) else program
    ids, visible = some_ids(len(vocab), 4, 30), np.tri(4, dtype=bool)
    found, fails = BatchInterpreter(program, vocab, visible).selections(ids)
    for i, row in enumerate(ids):
        try:
            every = every_value(program, [vocab[k] for k in row], visible)
        except UndefinedValue:
            assert fails[i]
            continue
        assert not fails[i]
        selecting = [expr for expr, _ in every if isinstance(expr, Aggregate | SelectorWidth)]
        assert [expr for expr, _ in found] == selecting
        rows = {id(expr): value for expr, value in every}
        for expr, at_once in found:
            np.testing.assert_array_equal(at_once[i], rows[id(expr.selector)])


def test_the_edges_hold_values_and_undefined_inputs():
    """Otherwise nothing is compared above."""
    each = [both(program, [0, 1, 2], some_ids(3, 4, 30), np.tri(4, dtype=bool))[1] for program in EDGES.values()]
    assert sum(None in answers for answers in each) >= 6
    assert sum(any(answers) for answers in each) >= len(EDGES) - 2


@pytest.mark.parametrize("constant", ["MOST_ENTRIES", "MOST_CELLS"])
def test_large_tables_and_long_sequences_are_the_same_in_pieces(constant, monkeypatch):
    monkeypatch.setattr(batch_interpreter, constant, 3)
    for name, (program, vocab) in LIBRARY.items():
        if name != "latest":
            at_once, each = both(program, list(vocab), some_ids(5, 6, 20))
            assert at_once == each, name


@given(st.integers(1, 70), st.integers(1, 9), st.integers(2, 1000))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_distinct_rows_are_told_apart_whatever_their_length(n_pos, n_rows, n_codes):
    """Beyond 62 bits too, where a row is no single number."""
    rows = np.random.default_rng(n_pos).integers(-2, n_codes, size=(n_rows, n_pos))
    rows = np.concatenate([rows, rows[::-1]])
    first, which = batch_interpreter._distinct(rows)
    assert len(first) == len({tuple(row) for row in rows.tolist()})
    assert (rows[first][which] == rows).all()


def test_functions_are_called_once_for_each_value():
    called = []
    program = Map(lambda t: called.append(t) or t, tokens)
    tables = BatchInterpreter(program, ["a", "b"], np.ones((3, 3), dtype=bool))
    for _ in range(3):
        tables(np.zeros((5, 3), dtype=int))
    assert called == ["a"]


def fails_on_x(token):
    if token == "x":
        raise ValueError(token)
    return token


NO_X = Map(fails_on_x, tokens)
BEFORE = Select(indices, indices, lambda key, query: key == query - 1)


@pytest.mark.parametrize(
    ("program", "sequence", "defined"),
    [
        (NO_X, "axb", [True, False, True]),
        (Aggregate(BEFORE, NO_X), "axb", [True, True, False]),
        (Aggregate(BEFORE, Aggregate(BEFORE, NO_X)), "xab", [True, True, False]),
        (SequenceMap(lambda x, y: x + y, NO_X, Aggregate(BEFORE, NO_X)), "abx", [True, True, False]),
        (Aggregate(Select(tokens, indices, lambda key, query: query < 2), tokens), "aab", [True, True, True]),
        (Aggregate(Select(tokens, indices, lambda key, query: query < 2), tokens), "abb", [True, False, True]),
        (SelectorWidth(Select(tokens, indices, lambda key, query: 1 // query > 0)), "ab", [False, True]),
        (SelectorWidth(Select(indices, tokens, lambda key, query: 1 // (key - 1) > 0)), "ab", [True, False]),
        (SelectorWidth(Select(NO_X, tokens, Comparison.EQ)), "axa", [True, False, False]),
        (SelectorWidth(Select(tokens, NO_X, Comparison.EQ)), "axa", [True, False, True]),
        (SelectorWidth(Select(NO_X, NO_X, Comparison.EQ)), "axa", [True, False, False]),
        (Aggregate(SelectBest(tokens, tokens, Comparison.TRUE, NO_X), indices), "axa", [True, False, False]),
        (SelectorWidth(~(BEFORE & Select(tokens, NO_X, Comparison.EQ))), "axa", [True, False, True]),
        (Where(indices == 0, NO_X, tokens), "xa", [False, True]),
    ],
)
def test_a_position_has_a_value_if_nothing_that_it_reads_fails(program, sequence, defined):
    vocab = ["a", "b", "x"]
    causal = np.tri(len(sequence), dtype=bool)
    tables = BatchInterpreter(program, vocab, causal)
    ids = np.array([[vocab.index(token) for token in sequence]])
    assert tables(ids)[1].tolist() == [not all(defined)]
    codes, found = tables.where_defined(ids)
    assert found.tolist() == [defined]
    # By the plain interpreter: what stands before a position alone decides it, so that sequences can be cut there.
    for n in range(1, len(sequence) + 1):
        if (said := plainly(program, sequence[:n], causal[:n, :n])) is not None:
            assert said == [value_key(tables.values[code]) for code in codes[0, :n]]
            assert all(defined[:n])


@pytest.mark.parametrize("name", [name for name in LIBRARY if name != "latest"])
def test_where_a_program_is_defined_on_the_whole_sequence_it_is_at_every_position(name):
    program, vocab = LIBRARY[name]
    tables = BatchInterpreter(program, vocab, np.ones((4, 4), dtype=bool))
    ids = some_ids(len(vocab), 4)
    codes, fails = tables(ids)
    np.testing.assert_array_equal(tables.where_defined(ids)[0], codes)
    assert tables.where_defined(ids)[1][~fails].all()


def test_what_is_given_is_not_evaluated_again_and_says_the_same():
    """Undefined values and failures as well."""
    calls = []

    def counted(token):
        calls.append(token)
        return {0: None, 2: "no number"}.get(token, 3)

    inner = Map(lambda x: 6 // x, Map(counted, tokens))
    before = Select(indices, indices, Comparison.LT)
    readers = [
        inner + 1,
        Aggregate(before, inner, default=9),
        SequenceMap(lambda x, i: (x, i), inner, indices),
        SelectorWidth(Select(inner, indices, lambda k, q: k > q)),
    ]
    ids, visible = some_ids(3, 4), np.ones((4, 4), dtype=bool)

    def found(program, known=()):
        reader = BatchInterpreter(program, (0, 1, 2), visible, known)
        codes, is_defined = reader.where_defined(ids)
        said = [reader.values[code] for code in codes[is_defined]]
        return codes, is_defined, said, reader.values

    codes, is_defined, _, values = found(inner)
    assert not is_defined.all()
    assert not codes[is_defined].all()
    for program in readers:
        _, alone_defined, alone, _ = found(program)
        n_calls = len(calls)
        _, is_given_defined, said, _ = found(program, [Evaluated(inner, codes, values, ~is_defined)])
        assert len(calls) == n_calls
        np.testing.assert_array_equal(is_given_defined, alone_defined)
        assert said == alone
        known = [Evaluated(inner, codes, values, ~is_defined)]
        _, fails = BatchInterpreter(program, (0, 1, 2), visible)(ids)
        np.testing.assert_array_equal(BatchInterpreter(program, (0, 1, 2), visible, known)(ids)[1], fails)
