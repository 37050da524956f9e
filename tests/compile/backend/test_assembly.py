import numpy as np
from rasp_examples import EQUAL

from rasplens.compile import compile_program
from rasplens.compile.rasp import Aggregate, Comparison, Select, SelectorWidth, indices, tokens
from rasplens.compile.rasp import causal as causally

BACK = Select(indices, indices, Comparison.LEQ)


def test_reverse_by_hand():
    """The anatomy of one model, counted out: where everything stands and how large it is."""
    length = SelectorWidth(Select(tokens, tokens, Comparison.TRUE)).named("length")
    opposite = (length - 1 - indices).named("opposite")
    reverse = Aggregate(Select(indices, opposite, Comparison.EQ), tokens).named("reverse")
    compiled = compile_program(reverse, ["a", "b"], 3, optimize=False)
    model = compiled.transformer
    assert list(compiled.variables) == [
        "tokens", "indices", "length (attention on BOS)", "length", "(length - 1)", "opposite", "reverse"
    ]  # fmt: skip
    assert compiled.heads == {(0, 0): "length (attention on BOS)", (3, 0): "reverse"}
    assert list(compiled.neurons.values()) == ["length", "(length - 1)", "opposite"]
    assert model.config.n_layers == 4
    widths = {"tokens": 2, "indices": 3, "share": 1, "length": 3, "length - 1": 3, "opposite": 3, "reverse": 2}
    assert model.config.d_model == sum(widths.values()) + 1
    assert model.config.n_ctx == 4
    assert model.config.d_vocab == 3
    assert model.config.attn_scale == 1


def test_idle_parts_are_zero():
    compiled = compile_program((SelectorWidth(EQUAL) + 1).named("more"), ["a", "b"], 2, optimize=False)
    model = compiled.transformer
    assert (1, 0) not in compiled.heads
    assert not model.weights["blocks.1.attn.W_O"].any()
    used = max(end for layer, _, end in compiled.neurons if layer == 1)
    assert not model.weights["blocks.1.mlp.W_in"][:, used:].any()


def test_the_bos_is_the_last_token_and_the_first_position():
    compiled = compile_program(SelectorWidth(EQUAL & BACK), ["a", "b"], 3)
    np.testing.assert_array_equal(compiled.encode([["b", "a"]]), [[2, 1, 0]])
    model = compiled.transformer
    assert model.weights["embed.W_E"][2].sum() == 1
    assert not model.weights["pos_embed.W_pos"][0].any()


def test_the_mask_lets_everything_see_the_bos():
    causal = compile_program(causally(SelectorWidth(EQUAL)), ["a"], 3, causal=True).transformer.mask[0]
    np.testing.assert_array_equal(causal, np.tri(4, dtype=bool))
    full = compile_program(SelectorWidth(EQUAL), ["a"], 3).transformer.mask[0]
    assert full[1:].all()
    assert full[0].tolist() == [True, False, False, False]
    silent = np.tri(3, k=-1, dtype=bool)
    masked = compile_program(SelectorWidth(EQUAL), ["a"], 3, mask=silent).transformer.mask[0]
    np.testing.assert_array_equal(masked[1:, 1:], silent)
    assert masked[:, 0].all()
    assert not masked[0, 1:].any()


def test_weights_are_float32():
    assert compile_program(tokens, ["a"], 1).transformer.dtype == np.float32
