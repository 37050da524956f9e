"""Disguises: other weights, the same function."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compile import compile_program, programs
from rasplens.model import Config, Transformer, bidirectional_mask
from rasplens.model.twins.reparametrise import KINDS, disguise

SIZES = Config(n_layers=2, n_heads=3, d_model=10, d_head=4, n_ctx=6, d_vocab=7, d_vocab_out=5)
CONFIGS = {
    "attention only": SIZES,
    "mlp": replace(SIZES, d_mlp=9),
    "smeared keys": replace(SIZES, smeared_keys=True),
    "sinusoidal": replace(SIZES, positions="sinusoidal_qk", smeared_keys=True, d_mlp=9),
    "shortformer": replace(SIZES, positions="shortformer"),
    "rotary": replace(SIZES, positions="rotary", d_mlp=9, activation="gelu"),
    "no positions": replace(SIZES, positions="none"),
    "identity v": replace(SIZES, d_head=10, identity_v=True),
    "identity v and o": replace(SIZES, n_heads=1, d_head=10, identity_v=True, identity_o=True),
    "one head": replace(SIZES, n_heads=1),
    "no layers": replace(SIZES, n_layers=0),
}
TOKENS = np.random.default_rng(5).integers(0, 7, (12, 6))
SAME = {"rtol": 0, "atol": 1e-9}
"""Of logits in float64 after a few products of well-conditioned matrices."""


def differs(first: Transformer, second: Transformer) -> list[str]:
    """The names of the weights of one shape that are not the same, and of those of another shape."""
    return [
        name
        for name, array in first.weights.items()
        if array.shape != second.weights[name].shape or not np.allclose(array, second.weights[name])
    ]


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("extra_width", [0, 3])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_logits_stay_and_the_weights_do_not(random_transformer, config, extra_width, biases):
    model = random_transformer(config, biases=biases)
    twin = disguise(model, seed=3, extra_width=extra_width)
    np.testing.assert_allclose(twin(TOKENS), model(TOKENS), **SAME)
    assert twin.config.d_model == config.d_model + extra_width
    fixed = {"unembed.b_U"} | {f"blocks.{layer}.attn.b_Q" for layer in range(config.n_layers)}
    fixed |= {f"blocks.{layer}.attn.b_K" for layer in range(config.n_layers)}
    fixed |= {name for name in model.weights if name.endswith("smear")}
    assert set(model.weights) - set(differs(model, twin)) <= fixed


@pytest.mark.parametrize("extra_width", [0, 3])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_in_an_oblique_basis_the_logits_stay_and_angles_do_not(random_transformer, config, extra_width):
    model = random_transformer(config, biases=True)
    twin = disguise(model, seed=3, extra_width=extra_width, basis="oblique", condition=30.0)
    np.testing.assert_allclose(twin(TOKENS), model(TOKENS), **SAME)
    angles = [one.W_E @ one.W_E.T for one in (model, twin)]
    assert np.abs(angles[0] - angles[1]).max() > 0.1
    turned = disguise(model, seed=3, extra_width=extra_width)  # the negative control: a rotation keeps them
    np.testing.assert_allclose(turned.W_E @ turned.W_E.T, angles[0], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_changes_its_own_weights_alone(random_transformer, kind):
    model = random_transformer(CONFIGS["mlp"], biases=True)
    twin = disguise(model, kinds=[kind])
    np.testing.assert_allclose(twin(TOKENS), model(TOKENS), **SAME)
    changed = {name.rsplit(".", 1)[-1] for name in differs(model, twin)}
    assert (
        changed
        == {
            "residual": {"W_E", "W_pos", "W_Q", "W_K", "W_V", "W_O", "b_O", "W_in", "W_out", "b_out", "W_U"},
            "heads": {"W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V"},
            "neurons": {"W_in", "W_out", "b_in"},
        }[kind]
    )


def test_masks_of_its_own_are_kept(random_transformer):
    mask = np.random.default_rng(0).random((2, 6, 6)) < 0.6
    mask[0, 2] = False  # a row that stays silent
    model = random_transformer(CONFIGS["mlp"], mask=mask, biases=True)
    twin = disguise(model)
    np.testing.assert_array_equal(twin.mask, mask)
    np.testing.assert_allclose(twin(TOKENS), model(TOKENS), **SAME)
    other = Transformer(twin.config, twin.weights, bidirectional_mask(2, 6))
    assert np.abs(other(TOKENS) - model(TOKENS)).max() > 0.1


@pytest.mark.parametrize("name", ["embed.W_E", "blocks.0.attn.W_V", "blocks.1.attn.W_Q", "blocks.1.mlp.W_in"])
def test_half_a_disguise_is_none(random_transformer, name):
    """The negative control: one array turned alone changes the logits."""
    model = random_transformer(CONFIGS["mlp"])
    twin = disguise(model)
    wrong = Transformer(model.config, {**model.weights, name: twin.weights[name]}, model.mask)
    assert np.abs(wrong(TOKENS) - model(TOKENS)).max() > 0.1


def test_heads_are_shuffled_but_where_sinusoids_fix_their_order(random_transformer):
    """A head is known by its attention."""

    def order(config: Config) -> list[int]:
        model = random_transformer(config)
        patterns = [
            one.run_with_cache(TOKENS)[1]["blocks.0.attn.hook_pattern"] for one in (model, disguise(model))
        ]
        same = np.abs(patterns[0][:, :, None] - patterns[1][:, None]).max(axis=(0, 3, 4)) < 1e-9
        assert (same.sum(axis=1) == 1).all()
        return same.argmax(axis=1).tolist()

    assert order(replace(SIZES, positions="sinusoidal_qk", n_heads=4)) == [0, 1, 2, 3]
    assert order(replace(SIZES, n_heads=4)) != [0, 1, 2, 3]


def test_added_directions_hold_a_share_of_everything_only_when_turned(random_transformer):
    model = random_transformer(SIZES)
    point = "blocks.1.hook_resid_post"
    turned, idle = (
        disguise(model, extra_width=4, kinds=kinds).run_with_cache(TOKENS)[1][point]
        for kinds in (KINDS, ["heads"])
    )
    assert turned[..., -4:].std() > 0.1
    assert not idle[..., -4:].any()


def test_the_seed_says_which_disguise_it_is(random_transformer):
    model = random_transformer(CONFIGS["mlp"])
    first, again, other = (disguise(model, seed, noise=0.01) for seed in (0, 0, 1))
    for name, array in first.weights.items():
        np.testing.assert_array_equal(array, again.weights[name])
    assert set(differs(first, other)) == set(first.weights)


def test_nothing_to_change_changes_nothing(random_transformer):
    model = random_transformer(CONFIGS["identity v and o"])
    twin = disguise(model, kinds=())
    assert twin.config == model.config
    assert differs(model, twin) == []


@pytest.mark.parametrize("noise", [0.1, 1e-4])
def test_noise_stays_below_what_was_asked_and_is_there(random_transformer, noise):
    model = random_transformer(CONFIGS["mlp"], biases=True)
    off = np.abs(disguise(model, noise=noise, tokens=TOKENS)(TOKENS) - model(TOKENS)).max()
    assert noise / 10 < off <= noise
    assert np.abs(disguise(model)(TOKENS) - model(TOKENS)).max() < 1e-9


def test_noise_is_measured_on_random_inputs_by_default(random_transformer):
    model = random_transformer(SIZES)
    tokens = np.random.default_rng(9).integers(0, 7, (400, 6))
    off = np.abs(disguise(model, noise=0.01)(tokens) - model(tokens)).max()
    assert 0.001 < off < 0.03


def test_noise_makes_the_identity_none(random_transformer):
    model = random_transformer(CONFIGS["identity v"])
    twin = disguise(model, kinds=(), noise=0.01, tokens=TOKENS)
    assert 0.001 < np.abs(twin(TOKENS) - model(TOKENS)).max() <= 0.01


def test_noise_below_rounding_is_refused(random_transformer):
    model = random_transformer(SIZES, dtype=np.float32)
    with pytest.raises(ValueError, match=r"noise.*1e-12"):
        disguise(model, noise=1e-12, tokens=TOKENS)


def test_the_dtype_is_kept(random_transformer):
    model = random_transformer(CONFIGS["mlp"], dtype=np.float32)
    twin = disguise(model)
    assert twin.dtype == np.float32
    np.testing.assert_allclose(twin(TOKENS), model(TOKENS), rtol=0, atol=1e-4)


def test_layer_norm_fixes_the_residual_stream_and_nothing_else(random_transformer):
    model = random_transformer(replace(SIZES, normalization="LN", d_mlp=9))
    for arguments in ({}, {"kinds": ["residual"]}, {"kinds": (), "extra_width": 2}):
        with pytest.raises(ValueError, match=r'layer norm.*"residual".*extra_width'):
            disguise(model, **arguments)
    twin = disguise(model, kinds=["heads", "neurons"])
    np.testing.assert_allclose(twin(TOKENS), model(TOKENS), **SAME)
    assert differs(model, twin)


def test_what_is_no_disguise_is_refused(random_transformer):
    model = random_transformer(SIZES)
    with pytest.raises(ValueError, match=r"kinds.*list.* residual, heads, neurons.*'layers'"):
        disguise(model, kinds=["heads", "layers"])
    with pytest.raises(ValueError, match=r"kinds.*list.*'heads'"):
        disguise(model, kinds="heads")
    with pytest.raises(ValueError, match=r"basis.* orthogonal, oblique.*'skew'"):
        disguise(model, basis="skew")
    for condition in (0.5, np.inf, np.nan):
        with pytest.raises(ValueError, match=f"condition.* 1.*{condition}"):
            disguise(model, basis="oblique", condition=condition)
    with pytest.raises(ValueError, match=r'oblique.*"residual".*kinds'):
        disguise(model, basis="oblique", kinds=["heads"])
    for arguments in ({"extra_width": -1}, {"noise": -0.5}):
        with pytest.raises(ValueError, match=r"extra_width and noise.* 0 .*-"):
            disguise(model, **arguments)


@pytest.mark.parametrize(
    ("program", "causal"),
    [(programs.induction(), True), (programs.offset(3), True), (programs.reverse(), False)],
    ids=["induction", "offset", "reverse"],
)
def test_a_disguised_program_answers_as_the_interpreter_does(program, causal):
    compiled = compile_program(program, ["1", "2", "3"], 5, causal=causal)
    hidden = replace(compiled, transformer=disguise(compiled.transformer, seed=1, extra_width=5))
    sequences = [[str(1 + i) for i in row] for row in np.ndindex(3, 3, 3, 3, 3)]
    wanted = [compiled.interpret(tokens) for tokens in sequences]
    assert hidden.run_batch(sequences, check=False) == wanted
    shown = {**compiled.transformer.weights, "embed.W_E": np.roll(compiled.transformer.W_E, 1, axis=1)}
    broken = replace(
        compiled, transformer=Transformer(compiled.transformer.config, shown, compiled.transformer.mask)
    )
    ids = compiled.encode(sequences)
    assert (
        np.abs(broken.transformer(ids)[:, broken.offset :] - compiled.transformer(ids)[:, compiled.offset :]).max()
        > 0.1
    )  # the negative control
