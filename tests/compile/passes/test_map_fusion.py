import pytest
from model_sizes import size

from rasplens.compile import CompileLimits, compile_program, programs, rasp, verify
from rasplens.compile.passes.pipeline import ALL_PASSES
from rasplens.compile.rasp import Map, Select, SelectorWidth, indices, tokens


def test_chains_of_maps_go_into_the_embedding():
    chain = Map(lambda t: t * 2, Map(lambda t: t.upper(), tokens))
    assert size(chain, []).n_layers == 2
    fused = size(chain, ["map-fusion", "views"])
    assert (fused.n_layers, fused.d_mlp) == (1, 0)


def test_a_share_of_tokens_needs_no_mlp():
    share = size(programs.frac_prevs(tokens == "a"), ALL_PASSES)
    assert (share.n_layers, share.d_mlp) == (1, 0)


LETTERS = "abcdef"
LOW = Map(lambda t: LETTERS.index(t) % 2, tokens)
HIGH = Map(lambda t: LETTERS.index(t) // 2, tokens)
CODE = rasp.SequenceMap(lambda x, y: (x, y), LOW, HIGH)
READERS = {
    "map": Map(lambda c: c[0] + 10 * c[1], CODE),
    "pair": rasp.SequenceMap(lambda c, i: (c, i), CODE, indices),
    "selector": SelectorWidth(Select(CODE, CODE, lambda key, query: key[0] < query[0])),
}


@pytest.mark.parametrize("program", READERS.values(), ids=READERS)
def test_readers_of_a_fused_map_know_its_values(program):
    """With values that never occur still among them, as where the inputs are too many to run."""
    assert verify(compile_program(program, LETTERS, 3, limits=CompileLimits(executed_inputs=0))).ok
    assert verify(compile_program(program, LETTERS, 2, optimize=["map-fusion"])).ok
