"""The program on one input, in the JSON of circuit-tracer."""

import json

import pytest

from rasplens.compile import compile_program, programs
from rasplens.compile.errors import UndefinedValue
from rasplens.compile.rasp import Aggregate, Comparison, Select, SelectorWidth, Where, indices, tokens
from rasplens.compile.rasp.interpreter import every_value
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.errors import RaspLensError

FIRST = Select(indices, indices, lambda key, query: key == 0)

NODE = {
    "node_id": str, "feature": int, "layer": str, "ctx_idx": int, "feature_type": str, "token_prob": float,
    "is_target_logit": bool, "run_idx": int, "reverse_ctx_idx": int, "jsNodeId": str, "clerp": str,
    "influence": type(None), "activation": type(None),
}  # fmt: skip


def named(graph):
    """The links by what their ends say, with their weights."""
    words = {node["node_id"]: (node["clerp"].split(" = ")[0], node["ctx_idx"]) for node in graph["nodes"]}
    return {(words[link["source"]], words[link["target"]]): link["weight"] for link in graph["links"]}


def has_answer(compiled, sequence):
    try:
        return compiled.interpret(sequence)[-1] is not None
    except UndefinedValue:
        return False


@pytest.fixture(scope="module")
def induction():
    return compile_program(programs.induction(), "abc", 5, causal=True).attribution_graph(list("abcab"))


def test_it_has_all_that_the_schema_asks_for(induction):
    assert json.loads(json.dumps(induction)) == induction
    assert set(induction) == {"metadata", "qParams", "nodes", "links"}
    assert {"slug", "scan", "transcoder_list", "prompt_tokens", "prompt", "schema_version"} <= set(
        induction["metadata"]
    )
    assert set(induction["qParams"]) == {"pinnedIds", "supernodes", "linkType", "clickedId", "sg_pos"}
    for node in induction["nodes"]:
        assert {name: type(value) for name, value in node.items()} == NODE
        assert node["node_id"].split("_")[0] == node["layer"]
        assert node["node_id"].split("_")[2] == str(node["ctx_idx"])
    ids = [node["node_id"] for node in induction["nodes"]]
    assert len(set(ids)) == len(ids)
    ends = {link[end] for link in induction["links"] for end in ("source", "target")}
    assert ends <= set(ids)
    grouped = [one for _, *members in induction["qParams"]["supernodes"] for one in members]
    assert sorted([*grouped, induction["qParams"]["clickedId"]]) == sorted(ids)


def test_induction_reads_what_followed_the_same_letter(induction):
    """After `a b c a b`: the letter before each, and the one behind the earlier `b`."""
    logit = ('Output "c" (p=1.000)', 4)
    links = named(induction)
    assert links[("induction", 4), logit] == 1
    read = {source for source, target in links if target == ("induction", 4)}
    assert {("tokens", 2), ("previous", 2), ("tokens", 4)} <= read  # the value, the key, the query
    assert links[("tokens", 1), ("previous", 2)] == 1
    assert ("tokens", 0) not in {source for source, _ in links}  # nothing on the way reads it
    assert {name for name, *_ in induction["qParams"]["supernodes"]} >= {"tokens", "previous", "induction"}


def test_links_go_forward_through_the_layers(induction):
    order = {node["node_id"]: -1 if node["layer"] == "E" else int(node["layer"]) for node in induction["nodes"]}
    assert all(order[link["source"]] <= order[link["target"]] for link in induction["links"])


def test_attention_is_shared_among_what_is_selected():
    same = Select(tokens, tokens, Comparison.EQ)
    mean = Aggregate(same, indices).named("mean")
    graph = compile_program(mean, "ab", 4).attribution_graph(list("aaba"), position=0)
    links = named(graph)
    places = [links[("indices", key), ("mean", 0)] for key in (0, 1, 3)]
    assert places == pytest.approx([1 / 3] * 3)
    assert (("indices", 2), ("mean", 0)) not in links


def test_what_selects_nothing_reads_its_query_alone():
    """Of a program that is a count, the output's own line is the count, in whatever encoding it is held."""
    after = SelectorWidth(Select(indices, indices, lambda key, query: key > query)).named("after")
    links = named(compile_program(after, "ab", 3).attribution_graph(list("aab")))
    assert {source for source, target in links if target == ("after", 2)} == {("indices", 2)}


def test_s_ops_that_share_a_name_are_not_taken_for_each_other():
    """Unnamed, both are an "aggregate": the one reads through the other, which is no line of its own."""
    back = Select(indices, indices, lambda key, query: key == max(query - 1, 0))
    twice = compile_program(Aggregate(back, Aggregate(back, tokens)), "abc", 4)
    links = named(twice.attribution_graph(list("abca")))
    (output,) = {target for source, target in links if source == ("tokens", 1)}
    assert links[("tokens", 1), output] == 1
    assert ("tokens", 2) not in {source for source, target in links if target == output}


def test_a_position_that_is_not_there_is_refused():
    compiled = compile_program(programs.reverse(), "ab", 3)
    with pytest.raises(RaspLensError, match="positions"):
        compiled.attribution_graph(list("ab"), position=2)


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_every_node_of_a_program_of_the_library_has_its_value(name):
    """The compiler keeps some s-ops in another encoding, or as what it counts: those are no values of theirs."""
    entry = CATALOGUE[name]
    compiled = compile_program(entry.build(), entry.vocab, entry.max_len, **dict(entry.options))
    *_, ids = compiled.inputs.sampled_ids(100, seed=0)
    sequences = [[compiled.inputs.vocab[token] for token in row] for row in ids]
    sequence = next(one for one in sequences if has_answer(compiled, one))
    n = len(sequence)
    values = every_value(compiled.program, sequence, compiled.inputs.visible[:n, :n])
    by_name = {expr.name: found for expr, found in values}  # the last of a name is the result
    found = compiled.attribution_graph(sequence)
    (answer,) = [node["clerp"] for node in found["nodes"] if node["is_target_logit"]]
    assert answer == f'Output "{compiled.interpret(sequence)[-1]}" (p=1.000)'
    shown = [node for node in found["nodes"] if not node["is_target_logit"]]
    assert shown
    for node in shown:
        variable, _, value = node["clerp"].partition(" = ")
        assert value == repr(by_name[variable][node["ctx_idx"]])
    assert all(0 < link["weight"] <= 1 for link in found["links"])


def test_of_a_choice_only_what_is_taken_is_read():
    is_a = (tokens == "a").named("is_a")
    chosen = Where(is_a, Aggregate(FIRST, tokens).named("first"), indices).named("chosen")
    compiled = compile_program(chosen, "ab", 3)
    for sequence, branch in (("aba", "first"), ("aab", "indices")):
        links = named(compiled.attribution_graph(list(sequence)))
        assert {source for source, target in links if target == ("chosen", 2)} == {("is_a", 2), (branch, 2)}
