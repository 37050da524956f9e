"""Every pass alone keeps every program what it is; and each does what it is for."""

import numpy as np
import pytest

from rasplens.compile import compile_program, programs, rasp, verify
from rasplens.compile.passes import ALL_PASSES
from rasplens.compile.passes import value_pruning as reaching
from rasplens.compile.rasp import Aggregate, Comparison, Map, Select, SelectorWidth, Where, indices, tokens


@pytest.mark.parametrize("chosen", ALL_PASSES)
def test_each_pass_alone_changes_no_answer(every_case, chosen):
    for case in every_case:
        compiled = compile_program(
            rasp.causal(case.program), case.vocab, case.max_len, optimize=[chosen], **case.options
        )
        found = verify(compiled)
        assert found.ok, (case, str(found))


@pytest.mark.slow
@pytest.mark.parametrize("left_out", ALL_PASSES)
def test_no_pass_needs_another(every_case, left_out):
    passes = [name for name in ALL_PASSES if name != left_out]
    for case in every_case:
        compiled = compile_program(
            rasp.causal(case.program), case.vocab, case.max_len, optimize=passes, **case.options
        )
        found = verify(compiled)
        assert found.ok, (case, str(found))


def test_where_values_are_not_found_by_running_nothing_changes_either(every_case, monkeypatch):
    """The passes as they meet large input spaces. Fused maps once had codes that their readers did not know."""
    monkeypatch.setattr(reaching, "REACHED_LIMIT", 0)
    for case in every_case:
        compiled = compile_program(rasp.causal(case.program), case.vocab, case.max_len, **case.options)
        found = verify(compiled)
        assert found.ok, (case, str(found))


def test_readers_of_a_fused_map_know_its_values():
    letters = "abcdefghij"
    low = Map(lambda t: letters.index(t) % 3, tokens)
    high = Map(lambda t: letters.index(t) // 3, tokens)
    code = rasp.SequenceMap(lambda x, y: (x, y), low, high)
    smaller = SelectorWidth(Select(code, code, lambda key, query: key[0] < query[0]))
    for program in (
        Map(lambda c: c[0] + 10 * c[1], code),
        rasp.SequenceMap(lambda c, i: (c, i), code, indices),
        smaller,
    ):
        compiled = compile_program(program, letters, 5)
        assert verify(compiled, inputs=map(tuple, ("a", "bd", "jab", "afij", "ibcjb", "aaaaa"))).ok
        assert verify(compile_program(program, letters, 2, optimize=["fuse"])).ok


def size(program, passes, vocab="ab", max_len=4):
    return compile_program(program, vocab, max_len, optimize=passes).transformer.config


def test_reached_drops_values_that_no_input_has():
    """Tokens and their shift come from three values each, but they meet in pairs that repeat none of them."""
    pair = rasp.SequenceMap(lambda x, y: x + y, tokens, Map(lambda t: t.upper(), tokens))
    assert size(pair, []).d_model - size(pair, ["reached"]).d_model == 2


def test_merge_makes_one_of_what_is_written_twice():
    twice = Map(lambda n: n + 0, SelectorWidth(Select(tokens, tokens, Comparison.EQ)))
    again = SelectorWidth(Select(tokens, tokens, lambda key, query: key == query))
    both = rasp.SequenceMap(lambda x, y: x * y, twice, again)
    assert size(both, []).n_heads == 2
    assert size(both, ["merge"]).n_heads == 1


def test_cast_and_used_leave_one_direction_for_a_number():
    total = rasp.numerical(
        rasp.LinearSequenceMap(indices, SelectorWidth(rasp.Select(tokens, tokens, Comparison.EQ)), 1, 1)
    )
    assert size(total, ["cast", "fold"]).d_model < size(total, ["fold"]).d_model


def test_fuse_and_fold_take_maps_into_the_embedding():
    chain = Map(lambda t: t * 2, Map(lambda t: t.upper(), tokens))
    assert size(chain, []).n_layers == 2
    folded = size(chain, ["fuse", "fold"])
    assert (folded.n_layers, folded.d_mlp) == (1, 0)
    share = programs.frac_prevs(tokens == "a")
    assert (size(share, ALL_PASSES).n_layers, size(share, ALL_PASSES).d_mlp) == (1, 0)


def test_route_lets_heads_choose():
    at_first = Aggregate(Select(indices, indices, lambda k, q: k == q + 1), tokens)
    later = Aggregate(Select(indices, indices, lambda k, q: k == q - 1), tokens)
    choice = Where(indices == 0, at_first, later)
    assert size(choice, ["fold"]).d_mlp > 0
    routed = size(choice, ["route", "used", "fold"])
    assert (routed.d_mlp, routed.n_heads) == (0, 2)
    for name in ("slots", "offset"):
        program = programs.slots() if name == "slots" else programs.offset(3)
        assert compile_program(program, [0, 1], 5).transformer.config.attn_only


def test_linear_looks_up_a_difference_instead_of_every_pair():
    left = programs.length() - indices
    looked_up, in_pairs = (size(left, [*chosen, "used", "fold"], "ab", 16).d_mlp for chosen in (["linear"], []))
    assert looked_up < in_pairs / 2


def test_everything_and_coarse_read_only_what_tells_keys_apart():
    length = programs.length()
    assert (
        size(length, ["everything", "fold"], vocab="abcdef").d_model
        < size(length, ["fold"], vocab="abcdef").d_model
    )
    count = programs.count("a")
    assert size(count, ["coarse", "fold"], vocab="abcdef").d_model < size(count, ["fold"], vocab="abcdef").d_model


def test_the_same_program_gives_the_same_weights_twice():
    first, second = (compile_program(programs.sort_by_frequency(), "abc", 4).transformer for _ in range(2))
    for name, weight in first.weights.items():
        np.testing.assert_array_equal(weight, second.weights[name])
