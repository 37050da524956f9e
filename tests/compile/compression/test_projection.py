import numpy as np
import pytest

from rasplens.compile.compression.examples import examples
from rasplens.compile.compression.projection import (
    layer_outputs,
    narrow,
    principal_components,
    reading_through,
)
from rasplens.model import Transformer
from rasplens.model.forward import forward


@pytest.mark.parametrize("which", ["frac", "unique"])
def test_the_narrow_model_computes_what_the_wide_one_does_that_reads_through_the_overlap(which, request):
    compiled = request.getfixturevalue(which)
    transformer = compiled.transformer.astype(np.float64)
    tokens = examples(compiled).tokens[-20:]
    rng = np.random.default_rng(0)
    projection = rng.normal(size=(transformer.config.d_model, 4)) / 2
    small = narrow(transformer, projection)
    assert small.config.d_model == 4
    logits, cache = small.run_with_cache(tokens)
    wide, seen = {}, {}

    def keep(name, value):
        seen[name] = value
        return value

    wide = forward(
        reading_through(transformer.weights, projection @ projection.T),
        transformer.mask,
        transformer.config,
        tokens,
        keep,
    )
    np.testing.assert_allclose(logits, wide, atol=1e-9)
    for point in layer_outputs(transformer.config.n_layers, transformer.config.attn_only):
        np.testing.assert_allclose(cache[point], seen[point] @ projection, atol=1e-9)
    assert np.abs(logits - transformer(tokens)).max() > 0.1  # the negative control: the map does something


def test_an_orthogonal_map_of_full_width_changes_nothing(frac):
    wide = frac.transformer.config.d_model
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(wide, wide)))[0]
    tokens = examples(frac).tokens
    np.testing.assert_allclose(narrow(frac.transformer, rotation)(tokens), frac.transformer(tokens), atol=1e-4)


def test_principal_components_keep_the_most_of_the_stream(frac):
    on = examples(frac)
    _, cache = frac.transformer.run_with_cache(on.tokens)
    states = np.concatenate([cache[f"blocks.{layer}.hook_resid_pre"][on.real] for layer in (0, 1)])
    states = np.concatenate([states, cache["blocks.1.hook_resid_post"][on.real]])

    def lost(projection):
        return ((states - states @ projection @ projection.T) ** 2).sum()

    found = principal_components(frac, on, 4)
    np.testing.assert_allclose(found.T @ found, np.eye(4), atol=1e-6)
    for seed in range(5):
        other = np.linalg.qr(np.random.default_rng(seed).normal(size=(states.shape[1], 4)))[0]
        assert lost(found) < lost(other)
    assert lost(principal_components(frac, on, states.shape[1])) == pytest.approx(0, abs=1e-6)


def test_a_map_keeps_the_dtype(frac):
    made = narrow(frac.transformer, np.eye(frac.transformer.config.d_model)[:, :3])
    assert isinstance(made, Transformer)
    assert made.dtype == frac.transformer.dtype
