import numpy as np
import pytest
import torch

from rasplens.compile import compile_program, programs, rasp
from rasplens.compile.ground_truth_circuit import LOGITS, POSITIONS, TOKENS, circuit, parts, run_parts
from rasplens.compile.rasp import tokens
from rasplens.model import HookedModel

SMALL = {
    "reverse": (programs.reverse, "ab", 3),
    "histogram": (programs.histogram, "ab", 3),
    "sort": (programs.sort, [1, 2, 3], 3),
    "shuffle_dyck": (lambda: programs.shuffle_dyck(["()"]), "()", 4),
    "slots": (programs.slots, [0, 1], 5),
}


@pytest.fixture(scope="module", params=SMALL)
def compiled(request):
    program, vocab, max_len = SMALL[request.param]
    return compile_program(program(), vocab, max_len)


def all_ids(compiled):
    return list(compiled.inputs.all_ids())


def test_the_parts_together_are_the_model(compiled):
    for ids in all_ids(compiled):
        expected = compiled.transformer(compiled.with_bos(ids))[:, compiled.offset :]
        np.testing.assert_allclose(run_parts(compiled, ids), expected, atol=1e-4)


def test_no_connection_outside_matters_and_each_inside_does(compiled):
    found = compiled.circuit()
    assert found.graph == {"ablation": "zero", "inputs": compiled.inputs.size, "exhaustive": True}
    names = [part.name for part in parts(compiled)]
    assert list(found) == names
    for i, writer in enumerate(names):
        for reader in names[i + 1 :]:
            change = max(
                np.abs(run_parts(compiled, ids, (writer, reader)) - run_parts(compiled, ids)).max()
                for ids in all_ids(compiled)
            )
            tolerance = compiled.tolerance(compiled.variables[compiled.output])
            assert found.has_edge(writer, reader) == (change > tolerance), (writer, reader)


def test_every_part_but_idle_ones_reaches_the_logits(compiled):
    import networkx as nx

    reaching = nx.ancestors(compiled.circuit(), LOGITS) | {LOGITS}
    assert {part.name for part in parts(compiled)} - reaching <= {POSITIONS, TOKENS}


def test_reverse_by_hand():
    compiled = compile_program(programs.reverse(), "ab", 3)
    share, length, opposite, reverse = "L0H0", "L0 length as numerical", "L1 opposite", "L2H0"
    assert set(compiled.circuit().edges) == {
        (TOKENS, share), (TOKENS, length), (share, length), (length, opposite), (POSITIONS, opposite),
        (TOKENS, opposite), (opposite, reverse), (POSITIONS, reverse), (TOKENS, reverse), (reverse, LOGITS),
    }  # fmt: skip


def test_attention_edges_by_torch_hooks_one_by_one():
    """Another way to the same circuit: a hook on the pattern of the torch model."""
    compiled = compile_program(programs.sort(), [1, 2, 3], 3)
    hooked = HookedModel(compiled.transformer)
    found = compiled.circuit("edge")
    n, offset = 3, compiled.offset

    def matters(layer, query, key):
        def cut(pattern, hook):
            pattern = pattern.clone()
            pattern[:, :, offset + query, offset + key] = 0
            return pattern / pattern.sum(dim=-1, keepdim=True).clamp_min(1e-9)

        for ids in all_ids(compiled):
            if max(query, key) >= ids.shape[1]:
                continue
            tokens = torch.tensor(compiled.with_bos(ids))
            with torch.no_grad():
                name = f"blocks.{layer}.attn.hook_pattern"
                logits = hooked.run_with_hooks(tokens, fwd_hooks=[(name, cut)]).numpy()[:, offset:]
            got = np.argmax(logits, axis=-1)
            if (
                got != np.argmax(compiled.transformer(compiled.with_bos(ids))[:, compiled.offset :], axis=-1)
            ).any():
                return True
            if np.abs(np.sort(logits, axis=-1)[..., -1] - 1).max() > 0.2:
                return True
        return False

    for layer in range(compiled.transformer.config.n_layers):
        for query in range(n):
            for key in range(n):
                inside = found.has_edge((layer, key), (layer + 1, query))
                assert inside == matters(layer, query, key), (layer, query, key)


def test_positions_that_do_not_count_are_left_out():
    compiled = compile_program(programs.slots(), [0, 1], 5)
    assert set(compiled.circuit("edge", positions=[3]).edges) == {((0, 0), (1, 2)), ((1, 2), (2, 3))}
    assert set(compiled.circuit("edge", positions=[4]).edges) == {((0, 1), (1, 2)), ((1, 2), (2, 4))}


def test_what_makes_no_sense_is_refused():
    compiled = compile_program(programs.length(), "a", 2)
    with pytest.raises(ValueError, match=r"granularity.*'neuron'"):
        circuit(compiled, "neuron")
    with pytest.raises(ValueError, match=r"\[2\].* 2 positions"):
        compiled.circuit("edge", positions=[2])


def test_a_model_without_neurons_has_no_parts_for_them():
    compiled = compile_program(rasp.numerical(tokens), [0], 3, optimize=["numeric-casts"])
    assert not compiled.neurons
    assert list(compiled.circuit()) == [part.name for part in parts(compiled)]
