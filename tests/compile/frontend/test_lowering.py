import pytest
from rasp_examples import BACK, EQUAL

from rasplens.compile import CompileError, rasp
from rasplens.compile import ir as ops
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Encoding,
    LinearSequenceMap,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    Where,
    indices,
    numerical,
    tokens,
)


def kinds(program) -> list[str]:
    return [type(node.op).__name__ for node in build_graph(program).nodes]


def test_every_node_comes_after_what_it_reads_and_tokens_come_first():
    program = Aggregate(Select(indices, tokens + 1, Comparison.EQ), tokens)
    graph = build_graph(program)
    assert kinds(program) == ["Tokens", "Indices", "Apply", "Select", "Aggregate"]
    assert all(source < i for i, node in enumerate(graph.nodes) for source in node.inputs)
    assert graph.output == len(graph.nodes) - 1


def test_tokens_are_there_even_if_the_program_does_not_read_them():
    assert kinds(indices) == ["Tokens", "Indices"]


def test_shared_expressions_become_one_node():
    deep = tokens + 1
    for _ in range(25):
        deep = deep + deep
    assert len(build_graph(deep).nodes) == 27


def test_a_width_is_a_share_and_a_lookup():
    graph = build_graph(SelectorWidth(EQUAL).named("hist"))
    assert [type(node.op).__name__ for node in graph.nodes] == ["Tokens", "Select", "BosAttention", "Apply"]
    assert [node.name for node in graph.nodes] == ["tokens", "select", "hist (attention on BOS)", "hist"]
    assert graph.nodes[2].encoding is Encoding.NUMERICAL


def test_a_width_is_read_exactly_where_one_over_one_over_n_is_not_n():
    *_, width = build_graph(SelectorWidth(EQUAL)).nodes
    assert any(int(1 / (1 / n)) != n for n in range(1, 1000))
    assert [width.op.function(1 / (n + 1)) for n in range(1000)] == list(range(1000))


def test_numbers_are_made_categorical_where_a_construction_needs_it_and_only_once():
    number = numerical(tokens + 1).named("number")
    selector = Select(number, number, Comparison.EQ)
    names = [node.name for node in build_graph(Aggregate(selector, number)).nodes]
    assert names.count("number as categorical") == 1


def test_one_argument_functions_read_numbers_as_they_are():
    assert kinds(Map(abs, numerical(tokens + 1))) == ["Tokens", "Apply", "Apply"]


def test_a_categorical_mean_of_numbers_is_a_lookup_from_the_mean():
    program = Aggregate(EQUAL, numerical(tokens + 1)).named("average")
    names = [node.name for node in build_graph(program).nodes]
    assert names[-2:] == ["average (mean)", "average (mean) as categorical"]


def test_linear_forms_stay_linear_only_as_numbers():
    assert kinds(numerical(LinearSequenceMap(tokens, indices, 1, -1)))[-1] == "Linear"
    assert kinds(LinearSequenceMap(tokens, indices, 1, -1))[-1] == "Apply"


def test_names_are_unique():
    program = Where(tokens == 1, (tokens + 1).named("x"), (tokens + 2).named("x"))
    names = [node.name for node in build_graph(program).nodes]
    assert sorted(names) == sorted(set(names))
    assert {"x", "x (2)"} <= set(names)


def test_selectors_over_the_same_variables_merge_into_one_predicate():
    larger = Select(tokens, tokens, Comparison.GT)
    assert kinds(SelectorWidth(EQUAL | larger)).count("Select") == 1
    graph = build_graph(SelectorWidth(~(EQUAL | larger)))
    match = next(node.op for node in graph.nodes if isinstance(node.op, ops.Select))
    assert match.takes_none
    assert match.predicate(1, 2)
    assert not match.predicate(2, 2)
    assert not match.predicate(3, 2)


def test_conjunctions_over_different_variables_become_one_head_with_several_parts():
    graph = build_graph(SelectorWidth(EQUAL & BACK & Select(indices, tokens, Comparison.EQ)))
    both = [node for node in graph.nodes if isinstance(node.op, ops.Conjunction)][-1]
    assert len(both.inputs) == 3


def test_constants_and_length_are_lowered():
    assert kinds(rasp.Full(3)) == ["Tokens", "Apply"]
    assert kinds(rasp.ConstantSOp([1, 2])) == ["Tokens", "Indices", "Apply"]
    assert kinds(rasp.length) == ["Tokens", "Select", "BosAttention", "Apply"]
    assert kinds(SelectorWidth(rasp.ConstantSelector([[True]])))[:3] == ["Tokens", "Indices", "Select"]


def test_annotated_tokens_are_a_lookup_from_the_embedded_ones():
    assert kinds(numerical(tokens)) == ["Tokens", "Apply"]
    assert kinds(tokens.named("input")) == ["Tokens"]


def test_other_combinations_go_through_the_pairs_of_what_they_read():
    either = build_graph(SelectorWidth(EQUAL | BACK))
    pairs = [node for node in either.nodes if node.name == "tokens × indices"]
    assert len(pairs) == 1  # one for keys and queries, which read the same two
    assert pairs[0].op.takes_none
    same_keys = build_graph(SelectorWidth(EQUAL | Select(tokens, indices, Comparison.EQ)))
    match = next(node for node in same_keys.nodes if isinstance(node.op, ops.Select))
    assert same_keys.nodes[match.inputs[0]].name == "tokens"


def test_a_best_key_is_counted_by_comparing_with_the_best_score():
    latest = SelectBest(tokens, tokens, Comparison.EQ, indices)
    found = kinds(SelectorWidth(latest))
    assert found.count("SelectBest") == found.count("Aggregate") == 1
    assert "SelectBest" in kinds(Aggregate(latest & EQUAL, tokens))


def test_a_best_match_is_one_head_and_counted_through_one_of_the_best_keys():
    nearest = SelectBest(tokens, tokens, Comparison.NEQ, lambda key, query: -abs(key - query))
    assert kinds(Aggregate(nearest, tokens)).count("SelectBestMatch") == 1
    found = kinds(SelectorWidth(nearest))
    assert found.count("SelectBestMatch") == found.count("Aggregate") == 1


def test_what_no_head_can_do_is_refused_with_the_expression():
    with pytest.raises(CompileError, match=r"SOp.*compiled") as caught:
        build_graph(rasp.SOp())
    assert isinstance(caught.value.node, rasp.RASPExpr)


def test_predicates_of_a_shared_selector_are_called_once_for_each_pair():
    """Forty steps of two uses each: once a predicate was called for every path through them."""
    asked = []
    selector = Select(tokens, tokens, lambda key, query: asked.append((key, query)) or key <= query)
    for _ in range(40):
        selector = (selector & EQUAL) | ~selector
    graph = build_graph(SelectorWidth(selector))
    match = next(node.op for node in graph.nodes if isinstance(node.op, ops.Select))
    assert match.predicate(1, 2) in (True, False)
    assert asked == [(1, 2)]


def test_a_shared_selector_of_several_variables_reads_each_once():
    selector = EQUAL
    for _ in range(40):
        selector = (selector & BACK) | ~selector
    pairs = [node.name for node in build_graph(SelectorWidth(selector)).nodes if "×" in node.name]
    assert pairs == ["tokens × indices"]
