import pytest

from rasplens.compile import rasp
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Encoding,
    Full,
    LinearSequenceMap,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    Where,
    categorical,
    indices,
    is_categorical,
    is_numerical,
    numerical,
    tokens,
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (tokens + 1, [2, 3, 4]),
        (1 + tokens, [2, 3, 4]),
        (tokens - 1, [0, 1, 2]),
        (1 - tokens, [0, -1, -2]),
        (tokens * 2, [2, 4, 6]),
        (2 * tokens, [2, 4, 6]),
        (tokens / 2, [0.5, 1, 1.5]),
        (6 / tokens, [6, 3, 2]),
        (tokens + indices, [1, 3, 5]),
        (tokens - indices, [1, 1, 1]),
        (tokens * indices, [0, 2, 6]),
        (indices / tokens, [0, 1 / 2, 2 / 3]),
        (tokens < 2, [True, False, False]),
        (tokens <= 2, [True, True, False]),
        (tokens > 2, [False, False, True]),
        (tokens >= 2, [False, True, True]),
        (tokens == 2, [False, True, False]),
        (tokens != 2, [True, False, True]),
        (tokens == indices + 1, [True, True, True]),
        (tokens > indices * 2, [True, False, False]),
        ((tokens > 1) & (tokens < 3), [False, True, False]),
        ((tokens < 2) | (tokens > 2), [True, False, True]),
        (~(tokens == 2), [True, False, True]),
        (tokens // 2, [0, 1, 1]),
        (7 // tokens, [7, 3, 2]),
        (indices // tokens, [0, 0, 0]),
        (tokens % 2, [1, 0, 1]),
        (5 % tokens, [0, 1, 2]),
        ((tokens * 5) % (indices + 2), [1, 1, 3]),
        (-tokens, [-1, -2, -3]),
        (abs(tokens - 2), [1, 0, 1]),
        (-tokens % 2, [1, 0, 1]),
        (True & (tokens == 3), [False, False, True]),
        (False | (tokens == 3), [False, False, True]),
    ],
    ids=lambda value: value.name if isinstance(value, rasp.SOp) else None,
)
def test_operators_work_elementwise(expression, expected):
    assert expression([1, 2, 3]) == expected


def test_comparisons_take_the_key_first():
    assert Comparison.LT(1, 2)
    assert not Comparison.GT(1, 2)
    assert [c(1, 1) for c in Comparison] == [True, False, True, False, True, False, True, False]


def test_operators_give_readable_names():
    assert (tokens == "x").name == "(tokens == 'x')"
    assert (1 - indices).name == "(1 - indices)"
    assert (~tokens).name == "(not tokens)"
    assert (-tokens % 2).name == "((-tokens) % 2)"
    assert abs(3 // tokens).name == "(abs (3 // tokens))"
    too_long = (tokens + indices) * (tokens - indices)
    assert too_long.name == "sequence_map"


def test_default_names_are_tracrs():
    selector = Select(tokens, tokens, Comparison.EQ)
    named = {
        "tokens": tokens,
        "indices": indices,
        "length": rasp.length,
        "map": Map(abs, tokens),
        "sequence_map": SequenceMap(max, tokens, indices),
        "linear_sequence_map": LinearSequenceMap(tokens, indices, 1, 2),
        "full": Full(1),
        "constant_sop": rasp.ConstantSOp([1]),
        "select": selector,
        "selector_and": selector & selector,
        "selector_or": selector | selector,
        "selector_not": ~selector,
        "constant_selector": rasp.ConstantSelector([[True]]),
        "selector_width": SelectorWidth(selector),
        "aggregate": Aggregate(selector, tokens),
        "select_best": SelectBest(tokens, tokens, Comparison.EQ, indices),
        "where": Where(tokens == 1, tokens, indices),
    }
    assert {name: expr.name for name, expr in named.items()} == {name: name for name in named}


def test_annotating_copies_and_leaves_the_original_alone():
    program = tokens + 1
    number = numerical(program).named("number")
    assert is_numerical(number)
    assert number.name == "number"
    assert is_categorical(program)
    assert is_categorical(categorical(number))
    assert program.name == "(tokens + 1)"
    assert number.annotated(colour="red").annotations["colour"] == "red"
    assert number.annotations["encoding"] is Encoding.NUMERICAL
    with pytest.raises(TypeError):
        program.annotations["name"] = "other"


def test_expressions_are_hashable_by_identity():
    assert len({tokens + 1, tokens + 1, tokens}) == 3
    with pytest.raises(AttributeError):
        tokens.annotations = {}


def test_an_s_op_has_no_truth_value():
    with pytest.raises(TypeError, match=r"'\(tokens == 1\)'.*truth value"):
        bool(tokens == 1)


def test_children_are_what_an_expression_reads():
    selector = Select(tokens, indices, Comparison.EQ)
    assert Aggregate(selector, tokens).children == (selector, tokens)
    assert tokens.children == ()


def test_the_repr_shows_one_level_however_deep_the_program():
    deep = tokens
    for _ in range(200):
        deep = SequenceMap(max, deep, deep)
    assert repr(deep) == "<SequenceMap of sequence_map, sequence_map>"
    assert repr(deep.named("deep")) == "<SequenceMap 'deep' of sequence_map, sequence_map>"
    assert repr(tokens) == "<TokensType>"


def test_a_constant_branch_stands_at_every_position():
    assert Where(tokens == 1, "one", tokens)([1, 2]) == ["one", 2]
    assert Where(tokens == 1, tokens, (0, 0.5))([1, 2]) == [1, (0, 0.5)]
    assert Where(tokens == 1, True, False)([1, 2]) == [True, False]
    assert [child.name for child in Where(tokens, 1, 2).children] == ["tokens", "full", "full"]


SELECTOR = Select(tokens, tokens, Comparison.EQ)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Map(abs, 3), "`inner` of Map.*s-op.*3.*Full"),
        (lambda: Map(3, tokens), "Map.*function.*3"),
        (lambda: Map(tokens, tokens), "Map.*function.*TokensType"),
        (lambda: SequenceMap(max, tokens, 1), "`snd` of SequenceMap.*s-op.*1"),
        (lambda: SequenceMap(1, tokens, tokens), "SequenceMap.*function.*1"),
        (lambda: LinearSequenceMap(1, tokens, 1, 1), "`fst` of LinearSequenceMap.*s-op.*1"),
        (lambda: Where(True, tokens, tokens), "`condition` of Where.*s-op.*True"),
        (lambda: Select(tokens, 0, Comparison.EQ), "`queries` of Select.*s-op.*0"),
        (lambda: Select(tokens, tokens, True), "Select.*function.*True"),
        (lambda: SelectBest(tokens, tokens, True, tokens), "SelectBest.*function.*True"),
        (
            lambda: SelectBest(tokens, tokens, Comparison.EQ, 1),
            "`score` of SelectBest.*function.*1",
        ),
        (lambda: SelectBest(tokens, tokens, Comparison.EQ, SELECTOR), "`score` of SelectBest.*Select"),
        (lambda: Where(tokens, None, tokens), "`then` of Where.*s-op.*None"),
        (lambda: Where(tokens, tokens, [1]), r"`otherwise` of Where.*s-op.*\[1\]"),
        (lambda: SelectorWidth(tokens), "`selector` of SelectorWidth.*<TokensType>"),
        (lambda: Aggregate(tokens, tokens), "`selector` of Aggregate.*TokensType"),
        (lambda: Aggregate(Select(tokens, tokens, Comparison.EQ), 1), "`sop` of Aggregate.*s-op.*1"),
        (lambda: ~Select(tokens, tokens, Comparison.EQ) & tokens, "`snd` of SelectorAnd.*TokensType"),
        (lambda: Select(tokens, tokens, Comparison.EQ) | 1, "`snd` of SelectorOr.*1"),
        (lambda: rasp.SelectorNot(tokens), "`inner` of SelectorNot.*TokensType"),
    ],
)
def test_expressions_of_the_wrong_kind_are_refused_where_they_are_built(build, message):
    with pytest.raises(TypeError, match=message):
        build()


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [("a\ud800", ValueError, "surrogate.*ud800"), (3, TypeError, "name.* str.*3")],
)
def test_names_that_no_file_could_hold_are_refused(unchecked, name, kind, message):
    with pytest.raises(kind, match=message):
        tokens.named(name)
