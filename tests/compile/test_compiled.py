import itertools

import numpy as np
import pytest
import torch
from rasp_examples import HIST

from rasplens.compile import CompiledModel, compile_program, load_compiled, rasp, verify
from rasplens.compile.rasp import Aggregate, Map, Select, SequenceMap, numerical, tokens
from rasplens.model import disguise


@pytest.fixture(scope="module")
def compiled():
    return compile_program(HIST, ["a", "b"], 4)


def test_it_is_called_like_the_program(compiled):
    assert compiled(["b", "a", "b"]) == HIST(["b", "a", "b"]) == compiled.interpret(["b", "a", "b"])
    assert compiled("abba") == [2, 2, 2, 2]


def test_batches_have_one_length(compiled):
    assert compiled.run_batch(["ab", "a", "aa"]) == [[1, 1], [1], [2, 2]]
    with pytest.raises(ValueError, match=r"lengths \[1, 2\].*pad=True"):
        compiled.encode(["ab", "a"])


def test_inputs_that_do_not_fit_are_refused(compiled):
    with pytest.raises(ValueError, match=r"5 tokens.*max_len=4"):
        compiled("aaaaa")
    with pytest.raises(ValueError, match=r"'c' at position 1.*vocabulary"):
        compiled("ac")


def test_the_codes_have_every_variable_without_the_bos(compiled):
    codes = compiled.codes(np.array([[0, 1, 0]]))
    assert set(codes) == set(compiled.variables)
    np.testing.assert_array_equal(codes["tokens"], [[0, 1, 0]])
    values = compiled.variables["hist"].values
    assert [values[code] for code in codes["hist"][0]] == [2, 1, 2]


def test_the_trace_of_a_sequence_has_values(compiled):
    traced = compiled.trace("aba")
    assert set(traced) == set(compiled.variables)
    assert traced["tokens"] == ["a", "b", "a"]
    assert traced["hist"] == compiled("aba")
    with pytest.raises(ValueError, match="'c' at position 1"):
        compiled.trace("ac")


def test_the_summary_is_one_line(compiled):
    assert repr(compiled).startswith(
        "CompiledModel('hist': 2 tokens, max_len=4, with BOS, 3 variables, Transformer("
    )
    assert "\n" not in repr(compiled)
    assert compile_program(numerical(tokens), [1], 1).output == "tokens as numerical"


@pytest.mark.parametrize("causal", [True, False])
def test_the_bridge_answers_the_same(causal):
    program = rasp.causal(Map(lambda n: n % 2, HIST)).named("parity")
    compiled = compile_program(program, ["a", "b"], 4, causal=causal)
    bridge = compiled.to_bridge()
    for length in range(1, 5):
        sequences = list(itertools.product("ab", repeat=length))
        with torch.no_grad():
            logits = bridge(torch.tensor(compiled.encode(sequences))).numpy()[:, compiled.offset :]
        codes = compiled.variables["parity"].decode(logits)
        values = compiled.variables["parity"].values
        assert [[values[code] for code in row] for row in codes] == compiled.run_batch(sequences)


def test_a_mask_of_its_own_has_no_bridge():
    strict = np.tri(4, k=-1, dtype=bool)
    with pytest.raises(ValueError, match="mask"):
        compile_program(HIST, ["a", "b"], 4, mask=strict).to_bridge()


DISGUISES = {
    "turned": {},
    "turned and widened": {"extra_width": 4},
    "oblique": {"basis": "oblique", "extra_width": 2},
    "widened alone": {"kinds": (), "extra_width": 3},
    "heads and neurons": {"kinds": ("heads", "neurons")},
}


@pytest.fixture(scope="module")
def rich():
    """Heads and neurons in several layers, categories and numbers."""
    from_last = Aggregate(Select(rasp.indices, HIST, lambda key, query: key == query - 1), tokens).named("at_hist")
    share = numerical(Aggregate(Select(tokens, tokens, lambda key, query: True), numerical(tokens == "a")))
    program = SequenceMap(lambda t, n: (t, n > 0.4), from_last, share.named("share")).named("both")
    return compile_program(program, ["a", "b"], 4)


@pytest.mark.parametrize("arguments", DISGUISES.values(), ids=DISGUISES)
def test_a_disguised_compiled_model_is_one_whose_every_part_stays_known(rich, arguments):
    twin = disguise(rich, seed=2, **arguments)
    assert isinstance(twin, CompiledModel)
    assert verify(twin).ok
    assert twin("abba") == rich("abba")
    ids = np.array(list(itertools.product(range(2), repeat=4)))
    before, after = rich.codes(ids), twin.codes(ids)
    assert list(before) == list(after)
    for name, codes in before.items():
        np.testing.assert_array_equal(after[name], codes)
    assert sorted(twin.heads.values()) == sorted(rich.heads.values())
    assert {name for _, name in twin.neurons.items()} == set(rich.neurons.values())


def renamed(graph, model, other):
    """The edges of a circuit of one model, its heads called as in the other."""
    own = {f"L{layer}H{head}": name for (layer, head), name in model.heads.items()}
    there = {name: f"L{layer}H{head}" for (layer, head), name in other.heads.items()}
    return {tuple(there[own[part]] if part in own else part for part in edge) for edge in graph.edges}


@pytest.mark.parametrize("basis", ["orthogonal", "oblique"])
def test_the_circuit_of_a_disguised_model_is_that_of_the_model(rich, basis):
    twin = disguise(disguise(rich, seed=4), seed=2, basis=basis, extra_width=1)  # a disguise of a disguise
    assert twin.heads != rich.heads or twin.neurons != rich.neurons
    assert renamed(twin.circuit(), twin, rich) == set(rich.circuit().edges)
    assert set(twin.circuit("edge").edges) == set(rich.circuit("edge").edges)


def test_a_disguised_model_can_be_stored_and_disguised_with_noise(rich, tmp_path):
    twin = disguise(rich, seed=1, basis="oblique", noise=1e-3)
    twin.save(tmp_path / "twin.safetensors")
    loaded = load_compiled(tmp_path / "twin.safetensors")
    for name, variable in twin.variables.items():
        np.testing.assert_array_equal(loaded.variables[name].columns, variable.columns)
        np.testing.assert_array_equal(loaded.variables[name].projector, variable.projector)
    assert loaded.neurons == twin.neurons
    assert loaded.run_batch(["abba", "bb"]) == rich.run_batch(["abba", "bb"])


def test_a_disguised_model_behind_a_bos_has_no_bridge(compiled):
    with pytest.raises(ValueError, match=r"disguise.*BOS.*bridge"):
        disguise(compiled).to_bridge()
    plain = disguise(compiled, kinds=("heads",)).to_bridge()
    with torch.no_grad():
        logits = plain(torch.tensor(compiled.encode(["abba"]))).numpy()
    np.testing.assert_allclose(logits, compiled.transformer(compiled.encode(["abba"])), atol=1e-4)
