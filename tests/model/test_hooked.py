from dataclasses import replace

import numpy as np
import pytest
import torch
from transformer_lens import ActivationCache

from rasplens.model import Config, HookedModel, hook_names, hooked
from rasplens.model.forward import ForwardPass, forward
from rasplens.model.hooked import READING, WRITING

CONFIG = Config(n_layers=2, n_heads=2, d_model=6, d_head=4, n_ctx=5, d_vocab=7, d_vocab_out=3, d_mlp=8)
SINUSOIDAL = Config(
    n_layers=1, n_heads=2, d_model=6, d_head=4, n_ctx=5, d_vocab=7, d_vocab_out=3,
    positions="sinusoidal_qk", smeared_keys=True,
)  # fmt: skip
TOKENS = torch.tensor([[1, 2, 3, 4, 0], [6, 6, 5, 0, 1]])
NORMALISED = replace(CONFIG, normalization="LN")
HOOKS = [(config, name) for config in (CONFIG, SINUSOIDAL, NORMALISED) for name in hook_names(config)]


@pytest.mark.parametrize(("config", "name"), HOOKS, ids=[f"{c.positions}-{c.normalization}-{n}" for c, n in HOOKS])
def test_every_hook_point_is_live(random_transformer, config, name):
    """An edit changes the logits, and just as the same edit of the numpy reference does."""
    transformer = random_transformer(config, biases=True)
    factor = np.random.default_rng(0).random(8)

    def edit(value: np.ndarray) -> np.ndarray:
        return np.where(np.isfinite(value), value * factor[: value.shape[-1]], value)

    def numpy_hook(point, value):
        return edit(value) if point == name else value

    expected = forward(transformer.weights, transformer.mask, config, TOKENS.numpy(), numpy_hook)
    model = HookedModel(transformer)
    with torch.no_grad():
        edited = model.run_with_hooks(TOKENS, fwd_hooks=[(name, lambda v, hook: torch.tensor(edit(v.numpy())))])
        clean = model(TOKENS)
    np.testing.assert_allclose(edited.numpy(), expected, rtol=0, atol=1e-10)
    assert (clean - edited).abs().max() > 1e-3


def test_the_torch_cache_equals_the_numpy_cache(random_transformer):
    transformer = random_transformer(CONFIG, biases=True)
    with torch.no_grad():
        _, cache = HookedModel(transformer).run_with_cache(TOKENS)
    _, expected = transformer.run_with_cache(TOKENS.numpy())
    assert list(cache) == list(expected)
    for name, value in cache.items():
        np.testing.assert_allclose(value.numpy(), expected[name], rtol=0, atol=1e-10, err_msg=name)


def test_the_activation_cache_of_transformer_lens_understands_the_names(random_transformer):
    model = HookedModel(random_transformer(CONFIG))
    _, cache = model.run_with_cache(TOKENS)
    cache = ActivationCache(cache, model)
    assert cache["pattern", 1].shape == (2, 2, 5, 5)
    assert cache["resid_post", 0].shape == (2, 5, 6)
    assert cache["result", 0].shape == (2, 5, 2, 6)


def test_the_state_dict_has_the_weights_own_names(random_transformer):
    transformer = random_transformer(CONFIG)
    assert set(HookedModel(transformer).state_dict()) == set(transformer.weights)


def test_a_model_survives_the_round_trip_through_torch(random_transformer):
    transformer = random_transformer(CONFIG, biases=True)
    back = HookedModel(transformer).to_transformer()
    assert back.config == transformer.config
    np.testing.assert_array_equal(back.mask, transformer.mask)
    for name, array in transformer.weights.items():
        np.testing.assert_array_equal(back.weights[name], array)


def test_gradients_reach_every_parameter(random_transformer):
    model = HookedModel(random_transformer(CONFIG, biases=True))
    model(TOKENS).square().sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert without == []


def test_tokens_that_do_not_fit_are_refused(random_transformer):
    with pytest.raises(ValueError, match="n_ctx=5"):
        HookedModel(random_transformer(CONFIG))(torch.zeros((1, 6), dtype=torch.long))


RESULT = "blocks.1.attn.hook_result"


def points_seen(model, run):
    """The hook points that a forward pass goes through."""
    seen = []
    plain = model._hook
    model._hook = lambda name, value: seen.append(name) or plain(name, value)
    run()
    del model._hook
    return seen


def test_each_heads_own_output_is_computed_only_if_something_looks(random_transformer):
    model = HookedModel(random_transformer(CONFIG, biases=True))
    names = [f"blocks.{layer}.attn.hook_result" for layer in (0, 1)]
    assert not set(names) & set(points_seen(model, lambda: model(TOKENS)))
    assert set(hook_names(CONFIG)) - set(names) == set(points_seen(model, lambda: model(TOKENS)))
    hooks = [(RESULT, lambda value, hook: value)]
    assert set(names) < set(points_seen(model, lambda: model.run_with_hooks(TOKENS, fwd_hooks=hooks)))
    assert set(names) < set(points_seen(model, lambda: model.run_with_cache(TOKENS)))
    only = lambda: model.run_with_cache(TOKENS, names_filter=["blocks.0.hook_resid_post"])  # noqa: E731
    assert not set(names) & set(points_seen(model, only))
    assert not set(names) & set(points_seen(model, lambda: model(TOKENS)))  # hooks have gone again


@pytest.mark.parametrize("config", [CONFIG, SINUSOIDAL, NORMALISED], ids=["mlp", "sinusoidal", "layer norm"])
def test_heads_together_are_the_sum_of_heads_apart(random_transformer, config):
    model = HookedModel(random_transformer(config, biases=True))
    name = "blocks.0.attn.hook_result"
    with torch.no_grad():
        together = model(TOKENS)
        apart = model.run_with_hooks(TOKENS, fwd_hooks=[(name, lambda value, hook: value)])
        without = model.run_with_hooks(TOKENS, fwd_hooks=[(name, lambda value, hook: value[:, :, :1])])
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-10)
    assert (together - without).abs().max() > 1e-3  # the negative control: one head left out


def test_the_forward_pass_of_heads_together_is_the_same_in_numpy(random_transformer):
    model = random_transformer(CONFIG, biases=True)
    apart = ForwardPass(model.weights, model.mask, CONFIG)
    together = replace(apart, per_head=False)
    tokens = TOKENS.numpy()
    np.testing.assert_allclose(together.logits(tokens), apart.logits(tokens), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "register",
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    ],
)
def test_torchs_own_hooks_are_seen_too(random_transformer, register):
    model = HookedModel(random_transformer(CONFIG, biases=True))
    seen = []
    handle = getattr(model.hook_dict[RESULT], register)(lambda *arguments: seen.append(len(arguments)) and None)
    model(TOKENS).sum().backward()
    assert len(seen) == 1
    handle.remove()
    model(TOKENS).sum().backward()
    assert len(seen) == 1


def test_torchs_own_hook_edits_each_heads_output(random_transformer):
    transformer = random_transformer(CONFIG, biases=True)
    model = HookedModel(transformer)

    def only_first(module, arguments, value):
        return torch.stack([value[:, :, 0], torch.zeros_like(value[:, :, 1])], dim=2)

    def numpy_hook(point, value):
        return value * np.array([1, 0])[:, None] if point == RESULT else value

    model.hook_dict[RESULT].register_forward_hook(only_first)
    expected = forward(transformer.weights, transformer.mask, CONFIG, TOKENS.numpy(), numpy_hook)
    with torch.no_grad():
        np.testing.assert_allclose(model(TOKENS).numpy(), expected, rtol=0, atol=1e-10)
    assert np.abs(expected - transformer(TOKENS.numpy())).max() > 1e-3


@pytest.mark.parametrize(
    "config", [CONFIG, replace(SINUSOIDAL, n_layers=2), NORMALISED], ids=["plain", "qk", "LN"]
)
def test_a_pass_may_start_at_a_layer(random_transformer, config):
    """As in TransformerLens: from the residual stream before it, with every later hook point alive."""
    model = HookedModel(random_transformer(config, biases=True))
    logits, cache = model.run_with_cache(TOKENS)
    stream = cache["blocks.1.hook_resid_pre"]
    torch.testing.assert_close(model(stream, start_at_layer=1), logits)
    assert not torch.allclose(model(0 * stream, start_at_layer=1), logits)
    edit = [("blocks.1.attn.hook_pattern", lambda pattern, hook: pattern.flip(-1))]
    edited = model.run_with_hooks(TOKENS, fwd_hooks=edit)
    torch.testing.assert_close(model.run_with_hooks(stream, start_at_layer=1, fwd_hooks=edit), edited)
    assert not torch.allclose(edited, logits)


@pytest.fixture
def with_a_silent_layer(random_transformer):
    """Heads that write nothing in layer 1, whose values are no numbers: what computes them notices."""
    transformer = random_transformer(CONFIG, biases=True)
    name = "blocks.1.attn.W_O"
    return replace(transformer, weights={**transformer.weights, name: np.zeros_like(transformer.weights[name])})


def test_heads_that_write_nothing_are_left_out_and_nothing_changes(with_a_silent_layer):
    model = HookedModel(with_a_silent_layer)
    expected = with_a_silent_layer(TOKENS.numpy())
    with torch.no_grad():
        np.testing.assert_allclose(model(TOKENS).numpy(), expected, rtol=0, atol=1e-10)
        model.get_parameter("blocks.1.attn.W_V").fill_(torch.nan)
        np.testing.assert_allclose(model(TOKENS).numpy(), expected, rtol=0, atol=1e-10)
        stream = model.run_with_cache(TOKENS, names_filter="blocks.1.hook_resid_pre")[1]["blocks.1.hook_resid_pre"]
        np.testing.assert_allclose(model(stream, start_at_layer=1).numpy(), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("point", ["hook_q", "hook_pattern", "hook_z", "hook_result"])
def test_heads_that_write_nothing_are_computed_where_somebody_looks(with_a_silent_layer, point):
    model, seen, name = HookedModel(with_a_silent_layer), [], f"blocks.1.attn.{point}"

    def look(value, hook):
        seen.append(value)

    with torch.no_grad():
        model.run_with_hooks(TOKENS, fwd_hooks=[(name, look)])
        model.get_parameter("blocks.1.attn.W_V").fill_(torch.nan)
        assert model.run_with_hooks(TOKENS, fwd_hooks=[(name, look)]).isnan().any()
    assert len(seen) == 2


def test_heads_that_write_nothing_have_a_gradient(with_a_silent_layer):
    model = HookedModel(with_a_silent_layer)
    model(TOKENS).sum().backward()
    assert model.get_parameter("blocks.1.attn.W_O").grad.abs().max() > 0


@pytest.fixture
def with_unread_directions(random_transformer):
    """Weights that read, or write, some of the directions only: a slice of them, or a few that lie apart."""
    config = replace(CONFIG, d_model=40)
    transformer = random_transformer(config, biases=True)
    weights, rng = dict(transformer.weights), np.random.default_rng(0)
    for i, name in enumerate(name for name in weights if name.endswith((*READING, *WRITING))):
        used, axis = np.zeros(40, dtype=bool), -1 if name.endswith(WRITING) else -2
        used[rng.integers(20) :][: 10 + i % 5] = True
        if i % 3 == 0 and axis == -2:
            used[[0, 39]] = True
        weights[name] = weights[name] * (used if axis == -1 else used[:, None])
    return replace(transformer, weights=weights)


def test_directions_that_weights_do_not_use_are_left_out_and_nothing_changes(with_unread_directions, monkeypatch):
    monkeypatch.setattr(hooked, "LARGE", 1)
    model = HookedModel(with_unread_directions)
    weights = dict(model.named_parameters())
    with torch.no_grad():
        used = model._used_directions(weights)
        kinds = {name.rpartition(".")[2]: type(directions) for name, directions in used.items()}
        assert set(kinds) == {"W_Q", "W_K", "W_V", "W_O", "W_in", "W_out", "W_U"}
        assert {slice, torch.Tensor} == {type(directions) for directions in used.values()}
        for per_head in (False, True):
            looks = [("blocks.0.attn.hook_result", lambda value, hook: value)] if per_head else []
            logits = model.run_with_hooks(TOKENS, fwd_hooks=looks)
            np.testing.assert_allclose(logits.numpy(), with_unread_directions(TOKENS.numpy()), rtol=0, atol=1e-10)
        model.get_parameter("blocks.0.attn.W_Q").data[0] += 1.0  # what is changed in place is noticed
        expected = model.to_transformer()(TOKENS.numpy())
        np.testing.assert_allclose(model(TOKENS).numpy(), expected, rtol=0, atol=1e-10)
        assert not np.allclose(expected, logits.numpy())


def test_directions_that_weights_do_not_use_have_a_gradient(with_unread_directions, monkeypatch):
    monkeypatch.setattr(hooked, "LARGE", 1)
    model = HookedModel(with_unread_directions)
    model(TOKENS).sum().backward()
    weight = model.get_parameter("blocks.0.mlp.W_in")
    unread = ~weight.any(dim=1)
    assert unread.any()
    assert weight.grad[unread].abs().max() > 0
