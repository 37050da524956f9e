"""The laws of interventions, and that numpy, torch and JAX agree on them."""

import array_api_compat.numpy as xnp
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from rasplens.errors import RaspLensError
from rasplens.model import Config, HookedModel
from rasplens.model.forward import forward
from rasplens.model.interventions import (
    Edges,
    Project,
    Replace,
    Subspace,
    array_hook,
    exchanged,
    of_each_head,
    torch_hooks,
    whole,
)

CONFIG = Config(2, 3, 8, 4, 6, 7, 7, d_mlp=5)
POINT, HEADS = "blocks.1.hook_resid_pre", "blocks.0.attn.hook_z"


@pytest.fixture(scope="module")
def model(random_transformer):
    return random_transformer(CONFIG, biases=True)


@pytest.fixture(scope="module")
def tokens():
    return np.random.default_rng(1).integers(0, 7, (4, 6))


@pytest.fixture(scope="module")
def other(model):
    """Activations on other inputs."""
    return model.run_with_cache(np.random.default_rng(2).integers(0, 7, (4, 6)))[1]


def in_numpy(model, tokens, interventions):
    with array_hook(interventions, xnp) as hook:
        return forward(model.weights, model.mask, model.config, tokens, hook)


def in_jax(model, tokens, interventions):
    weights = {name: jnp.asarray(array) for name, array in model.weights.items()}
    with array_hook(interventions, jnp) as hook:
        return forward(weights, jnp.asarray(model.mask), model.config, jnp.asarray(tokens), hook, jnp)


def in_torch(model, tokens, interventions):
    with torch.no_grad():
        hooks = torch_hooks(interventions)
        return HookedModel(model).run_with_hooks(torch.as_tensor(tokens), fwd_hooks=hooks).numpy()


def at_some(shape=(4, 6), seed=3):
    return np.random.default_rng(seed).random(shape) < 0.5


def oblique(rank):
    read, write = np.random.default_rng(4).normal(size=(2, 8, rank))
    return Subspace(read, write @ np.linalg.inv(read.T @ write))


def replaced(other, where=True):
    return Replace(POINT, other[POINT], where)


def along(other, subspace, places=(1, 4), where=None, point=POINT):
    value = other[point].reshape(4, 6, -1)[:, list(places)]
    return Project(
        point, dict.fromkeys(places, subspace), value, at_some((4, len(places))) if where is None else where
    )


def edges(other, part, layer=0):
    letter = {"values": "v", "keys": "k", "queries": "q"}.get(part)
    value = None if letter is None else other[f"blocks.{layer}.attn.hook_{letter}"]
    where = np.tril(at_some((4, 1, 6, 6), seed=6), -1)
    where = where.any(axis=-1, keepdims=True) & np.ones_like(where) if part == "queries" else where
    return Edges(layer, part, value, where, scale=1 / CONFIG.attn_scale)


def every_kind(other):
    yield replaced(other, at_some())
    yield Replace(HEADS, other[HEADS], at_some((4, 6, 3)))
    yield along(other, oblique(3))
    yield along(other, whole(12, slice(4, 8)), point=HEADS)
    yield from (edges(other, part) for part in ("values", "keys", "queries", "attention"))


def test_no_intervention_changes_nothing(model, tokens):
    for run in (in_numpy, in_torch, in_jax):
        np.testing.assert_allclose(run(model, tokens, []), model(tokens), atol=1e-4)


def test_what_is_as_it_was_changes_nothing(model, tokens):
    own = model.run_with_cache(tokens)[1]
    for one in every_kind(own):
        if not (isinstance(one, Edges) and one.part == "attention"):
            np.testing.assert_allclose(in_numpy(model, tokens, [one]), model(tokens), atol=1e-9)


@pytest.mark.slow
def test_every_kind_changes_something_and_alike_in_numpy_torch_and_jax(model, tokens, other):
    for one in every_kind(other):
        found = in_numpy(model, tokens, [one])
        assert np.abs(found - model(tokens)).max() > 1e-2
        np.testing.assert_allclose(in_torch(model, tokens, [one]), found, atol=1e-9)
        np.testing.assert_allclose(in_jax(model, tokens, [one]), found, rtol=1e-3, atol=1e-3)


def test_all_of_an_activation_projected_is_all_of_it_replaced(model, tokens, other):
    everywhere = along(other, whole(8), range(6), np.ones((4, 6), dtype=bool))
    np.testing.assert_allclose(in_numpy(model, tokens, [everywhere]), in_numpy(model, tokens, [replaced(other)]))
    part = along(other, whole(8, slice(7)), range(6), np.ones((4, 6), dtype=bool))  # the negative control
    assert not np.allclose(in_numpy(model, tokens, [part]), in_numpy(model, tokens, [replaced(other)]), atol=1e-3)


def test_the_order_of_disjoint_interventions_does_not_matter(model, tokens, other):
    where = at_some()
    first, second = replaced(other, where), Replace(POINT, 2 * other[POINT], ~where)
    apart = [along(other, whole(8, slice(3))), along(other, whole(8, slice(3, 8)))]
    for both in ([first, second], apart, [edges(other, "keys", 0), edges(other, "values", 1)]):
        np.testing.assert_allclose(in_numpy(model, tokens, both), in_numpy(model, tokens, both[::-1]))
    overlapping = [replaced(other), Replace(POINT, 2 * other[POINT], where)]  # the negative control
    assert not np.allclose(in_numpy(model, tokens, overlapping), in_numpy(model, tokens, overlapping[::-1]))


def test_an_oblique_subspace_is_exchanged_by_its_coordinates():
    subspace, (own, there) = oblique(3), np.random.default_rng(0).normal(size=(2, 5, 8))
    read, write = subspace.read, subspace.write
    np.testing.assert_allclose(write.T @ read, np.eye(3), atol=1e-9)
    found = exchanged(own, there, read, write)
    np.testing.assert_allclose(found @ read, there @ read)
    np.testing.assert_allclose(found, exchanged(own, there, read @ write.T))
    outside = np.linalg.svd(write)[0][:, 3:]
    np.testing.assert_allclose(found @ outside, own @ outside)  # nothing else changes


def test_an_edge_that_is_taken_away_gets_no_attention(model, tokens):
    seen = {}
    gone = edges({}, "attention")
    with array_hook([gone], xnp, seen.setdefault) as hook:
        forward(model.weights, model.mask, model.config, tokens, hook)
    pattern, where = seen["blocks.0.attn.hook_pattern"], np.broadcast_to(gone.where, (4, 3, 6, 6))
    assert not pattern[where].any()
    np.testing.assert_allclose(pattern.sum(axis=-1), 1)


def test_an_edge_is_taken_from_the_heads_that_are_said(model, tokens):
    where = edges({}, "attention").where & np.array([True, False, False])[:, None, None]
    gone, seen = Edges(0, "attention", None, where), {}
    with array_hook([gone], xnp, seen.setdefault) as hook:
        forward(model.weights, model.mask, model.config, tokens, hook)
    pattern = seen["blocks.0.attn.hook_pattern"]
    assert not pattern[where].any()
    own = model.run_with_cache(tokens)[1]["blocks.0.attn.hook_pattern"]
    np.testing.assert_allclose(pattern[:, 1:], own[:, 1:], atol=1e-6)
    assert where.shape == pattern.shape
    np.testing.assert_allclose(in_numpy(model, tokens, [gone]), in_torch(model, tokens, [gone]), atol=1e-5)


def test_an_intervention_that_nothing_passes_is_refused(model, tokens, other):
    nowhere = Replace("blocks.7.hook_resid_pre", other[POINT], True)
    with pytest.raises(RaspLensError, match=r"blocks\.7\.hook_resid_pre"):
        in_numpy(model, tokens, [nowhere])
    with pytest.raises(RaspLensError, match=r"blocks\.7\.hook_resid_pre"):
        in_jax(model, tokens, [nowhere])
    with pytest.raises(RaspLensError, match=r"blocks\.7\.hook_resid_pre"):
        in_torch(model, tokens, [nowhere])


def test_an_intervention_changes_no_array_that_it_was_given(model, tokens, other):
    before = {name: array.copy() for name, array in other.items()}
    for one in every_kind(other):
        for run in (in_numpy, in_torch):
            run(model, tokens, [one])
    for name, array in other.items():
        np.testing.assert_array_equal(array, before[name])


def test_of_shared_values_each_head_has_a_copy():
    values = np.random.default_rng(0).normal(size=(2, 3, 2, 5))
    found = of_each_head(values, 4, np)
    np.testing.assert_array_equal(found, values[:, :, [0, 0, 1, 1]])
    np.testing.assert_array_equal(of_each_head(jnp.asarray(values), 4, jnp), found.astype(np.float32))
    for n_heads in (3, 1):
        with pytest.raises(RaspLensError, match=f"{n_heads} heads cannot share 2"):
            of_each_head(values, n_heads, np)


def test_interventions_edit_where_the_model_is(other):
    """The meta device stands for an accelerator: operations take tensors of one device, and none comes back."""
    for one in every_kind(other):
        for point, hook in torch_hooks([one]):
            own = torch.zeros(other[point].shape, dtype=torch.float64, device="meta")
            assert hook(own, None).device.type == "meta"
    with pytest.raises(NotImplementedError):  # the negative control
        own.cpu()
    with pytest.raises(RuntimeError):
        torch.where(torch.ones(own.shape, dtype=torch.bool), own, own)


def test_a_hook_prints_no_array(other):
    """TransformerLens prints each hook that it adds. Once, most of a comparison's time went there."""
    for one in every_kind(other):
        for point, hook in torch_hooks([one]):
            assert repr(hook) == f"{type(one).__name__} at {point}"
