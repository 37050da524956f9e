"""A hooked model is used like TransformerLens's own: cache, stacked weights, hook names, return types."""

import numpy as np
import pytest
import torch
from transformer_lens import ActivationCache

from rasplens.compile import compile_program, programs
from rasplens.errors import RaspLensError
from rasplens.learned import Architecture, load_pretrained, untrained
from rasplens.model import HookedModel
from rasplens.tasks import get_task

TASK = get_task("induction")


@pytest.fixture(scope="module", params=["biases", "MLPs", "compiled"])
def model(request):
    if request.param == "biases":
        return HookedModel(load_pretrained("induction").transformer)
    if request.param == "compiled":
        return HookedModel(compile_program(programs.sort_unique(), "abc", 4).transformer)
    shape = Architecture(2, 2, 16, 8, d_mlp=12, bias=True, normalization="LN")
    return HookedModel(untrained(shape, TASK, 0))


@pytest.fixture(scope="module")
def tokens(model):
    return torch.as_tensor(np.random.default_rng(0).integers(0, model.cfg.d_vocab, (3, min(4, model.cfg.n_ctx))))


def test_a_cache_goes_by_short_names(model, tokens):
    _, cache = model.run_with_cache(tokens)
    assert isinstance(cache, ActivationCache)
    last = model.cfg.n_layers - 1
    assert torch.equal(cache["pattern", 0], cache["blocks.0.attn.hook_pattern"])
    assert torch.equal(cache["resid_post", -1], cache[f"blocks.{last}.hook_resid_post"])


def test_what_is_decomposed_adds_up(model, tokens):
    _, cache = model.run_with_cache(tokens)
    n = model.cfg.n_layers
    parts, labels = cache.decompose_resid(layer=n, return_labels=True)
    assert len(parts) == len(labels)
    torch.testing.assert_close(parts.sum(dim=0), cache["resid_post", n - 1])
    states = cache.accumulated_resid(layer=n)
    torch.testing.assert_close(states[-1], cache["resid_post", n - 1])
    heads = cache.stack_head_results(layer=n)
    assert len(heads) == n * model.cfg.n_heads
    written = sum(cache["attn_out", layer] for layer in range(n))
    torch.testing.assert_close(heads.sum(dim=0), written - model.accumulated_bias(n, include_mlp_biases=False))


def test_logits_are_attributed(model, tokens):
    logits, cache = model.run_with_cache(tokens)
    parts = cache.decompose_resid(layer=model.cfg.n_layers, apply_ln=False)
    if model.cfg.normalization == "none":
        found = cache.logit_attrs(parts, tokens=torch.tensor(1), has_batch_dim=True).sum(dim=0)
        bias = dict(model.named_parameters()).get("unembed.b_U")
        torch.testing.assert_close(found + (0 if bias is None else bias[1]), logits[..., 1])


def test_weights_are_stacked(model):
    config, weights = model.cfg, dict(model.named_parameters())
    of_heads = config.n_layers, config.n_heads
    assert model.W_Q.shape == model.W_K.shape == model.W_V.shape == (*of_heads, config.d_model, config.d_head)
    assert model.W_O.shape == (*of_heads, config.d_head, config.d_model)
    assert torch.equal(model.W_O[0], weights["blocks.0.attn.W_O"])
    assert torch.equal(model.W_E, weights["embed.W_E"])
    assert torch.equal(model.W_U, weights["unembed.W_U"])
    assert torch.equal(model.W_pos, weights["pos_embed.W_pos"])
    if config.attn_only:
        with pytest.raises(RaspLensError, match="no W_in"):
            _ = model.W_in
    else:
        assert model.W_in.shape == (config.n_layers, config.d_model, config.d_mlp)
        assert model.W_out.shape == (config.n_layers, config.d_mlp, config.d_model)


def test_weights_that_are_not_there():
    with pytest.raises(RaspLensError, match="no W_pos"):
        _ = HookedModel(load_pretrained("copy").transformer).W_pos


def test_unknown_hook_points_get_the_nearest(model, tokens):
    with pytest.raises(RaspLensError, match=r"'blocks\.0\.attn\.hook_patern'.*'blocks\.0\.attn\.hook_pattern'"):
        model.run_with_hooks(tokens, fwd_hooks=[("blocks.0.attn.hook_patern", lambda x, hook: x)])
    with pytest.raises(RaspLensError, match="no hook point"):
        model.run_with_cache(tokens, names_filter="hook_embd")
    with pytest.raises(RaspLensError, match="no hook point"):
        model.run_with_cache(tokens, names_filter=["hook_embed", "blocks.9.hook_resid_pre"])
    only = model.run_with_cache(tokens, names_filter=lambda name: name.endswith("resid_pre"))[1]
    assert set(only) == {f"blocks.{i}.hook_resid_pre" for i in range(model.cfg.n_layers)}


def test_return_types(unchecked):
    model = HookedModel(load_pretrained("induction").transformer)
    tokens = torch.as_tensor(TASK.held_out[:5])
    logits, loss = model(tokens, return_type="both")
    assert torch.equal(logits, model(tokens))
    log_probs = logits.log_softmax(dim=-1)
    expected = -log_probs[:, :-1].gather(2, tokens[:, 1:, None]).mean()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(model(tokens, return_type="loss"), expected)
    assert model(tokens, return_type=None) is None
    with pytest.raises(RaspLensError, match=r"return_type.*'probs'"):
        model(tokens, return_type="probs")
    other = HookedModel(load_pretrained("sort").transformer)
    with pytest.raises(RaspLensError, match=r"return_type='loss'.*d_vocab=\d+.*d_vocab_out=\d+"):
        other(torch.as_tensor(get_task("sort").held_out[:2]), return_type="loss")


def test_a_single_input_may_lose_its_batch_axis():
    model = HookedModel(load_pretrained("induction").transformer)
    _, cache = model.run_with_cache(torch.as_tensor(TASK.held_out[:1]), remove_batch_dim=True)
    assert cache["pattern", 0].shape == (model.cfg.n_heads, TASK.n_ctx, TASK.n_ctx)
