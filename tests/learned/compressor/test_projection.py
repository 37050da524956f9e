import numpy as np
import pytest

from rasplens.learned.compressor.examples import examples
from rasplens.learned.compressor.projection import (
    fitted_map,
    layer_outputs,
    narrow,
    principal_components,
    reading_errors,
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


def test_where_everything_is_read_alike_a_fitted_map_is_that_of_principal_components():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(200, 6)) * [5, 3, 2, 1, 0.5, 0.1]
    parts = [(np.eye(6), states.T @ states / 200)]
    found = fitted_map(parts, np.linalg.qr(rng.normal(size=(6, 3)))[0])
    left = ((states @ found @ found.T - states) ** 2).sum()
    assert left == pytest.approx((np.linalg.svd(states)[1][3:] ** 2).sum(), rel=1e-6)


def test_a_fitted_map_gives_way_where_nothing_is_read():
    """A direction that varies most, but that nothing reads, is left out."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(200, 4)) * [100, 1, 1, 1]
    parts = [(np.diag([0.0, 1, 1, 1]), states.T @ states / 200)]
    found = fitted_map(parts, np.linalg.qr(rng.normal(size=(4, 3)))[0])
    kept = (states @ found @ found.T)[:, 1:]
    np.testing.assert_allclose(kept, states[:, 1:], atol=1e-3)


def test_a_fitted_map_reads_better_than_principal_components(unique):
    """Also where neurons are steep; of full width it is exact."""
    on, wide = examples(unique), unique.transformer.config.d_model
    parts = reading_errors(unique, on)
    assert len(parts) == 2 * unique.transformer.config.n_layers + 1 - unique.transformer.config.attn_only

    def off(projection):
        change = projection @ projection.T - np.eye(wide)
        return sum(np.trace(reads @ change @ states @ change) for reads, states in parts)

    for d in (wide - 4, wide // 2):
        first = np.linalg.qr(np.random.default_rng(d).normal(size=(wide, d)))[0]
        assert off(fitted_map(parts, first)) < off(principal_components(unique, on, d)) / 2
    whole = fitted_map(parts, np.eye(wide))
    np.testing.assert_allclose(whole @ whole.T, np.eye(wide), atol=1e-6)
