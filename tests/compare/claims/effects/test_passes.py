"""Passes of bases and sources together do what patching with kept activations does."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from rasplens.compare import as_studied_model
from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched_logits
from rasplens.compare.claims.edges.program_edges import between_positions
from rasplens.compare.claims.effects.passes import (
    EdgesOfBlock,
    HeadsOfBlock,
    attributed,
    with_edges,
    with_edges_that_feed,
    with_other_heads,
)
from rasplens.learned import Architecture, untrained
from rasplens.model.hook_points import act_name
from rasplens.model.interventions import Edges, Replace, torch_hooks

N = 24


@pytest.fixture(scope="module")
def model(task):
    return untrained(Architecture(n_layers=3, n_heads=2, d_model=12, d_head=6), task, seed=3)


@pytest.fixture(scope="module")
def studied(model, task):
    return as_studied_model(model, task, task.held_out[:N])


def patch_of(task, part, share=0.4):
    rng = np.random.default_rng(0)
    edges = (rng.random((N, task.n_ctx, task.n_ctx)) < share) & between_positions(task)
    return EdgePatch(np.arange(N), np.roll(np.arange(N), 1), edges, part)


def clean(studied, patch):
    return studied.clean_logits[patch.base]


@pytest.mark.parametrize("part", ["values", "keys", "queries", "attention"])
def test_edges_are_patched_as_with_activations_that_are_kept(studied, task, part):
    patch = patch_of(task, part)
    found = with_edges(studied, patch)
    np.testing.assert_allclose(found, patched_logits(studied, patch), atol=2e-4)
    assert np.abs(found - clean(studied, patch)).max() > 1e-2  # the negative control: something is patched


@pytest.mark.parametrize("part", ["values", "keys", "queries"])
def test_the_base_itself_as_the_source_changes_nothing(studied, task, part):
    patch = patch_of(task, part)
    itself = replace(patch, source=patch.base)
    np.testing.assert_allclose(with_edges(studied, itself), clean(studied, patch), atol=1e-4)


def test_all_heads_one_by_one_are_all_heads_and_no_other_layer_is_patched(studied, task):
    patch = patch_of(task, "values")
    heads = list(product(range(3), range(2)))
    np.testing.assert_allclose(with_edges(studied, patch, heads), with_edges(studied, patch), atol=1e-5)
    last = with_edges(studied, patch, [(2, 1)])
    assert np.abs(last - with_edges(studied, patch, [(2, 0)])).max() > 1e-3


def test_batches_change_nothing(studied, task):
    patch, sizes = patch_of(task, "keys"), (1, 5)
    wide = with_edges(studied, patch)
    for size in sizes:
        parts = [with_edges(studied, patch.of(slice(i, i + size))) for i in range(0, N, size)]
        np.testing.assert_allclose(np.concatenate(parts), wide, atol=1e-4)


def test_what_feeds_all_parts_of_all_later_heads_is_more_than_what_feeds_one(studied, task):
    """By hand: keys of the fed head come from a run in which the edges are patched, and all else stays."""
    patch, fed = patch_of(task, "values"), [(2, 0)]
    found = with_edges_that_feed(studied, patch, "keys", fed)
    kept = {}

    def keep(value, hook):
        kept["k"] = value.clone()
        return value

    before = [(layer, head) for layer in range(2) for head in range(2)]
    along = patched_hooks(studied, patch, before)
    studied.logits([*along, (act_name("k", 2), keep)], patch.base)
    own = studied.whole(act_name("k", 2))[patch.base]
    where = np.zeros(own.shape[:3], dtype=bool)
    where[:, :, 0] = True
    by_hand = studied.logits(torch_hooks([Replace(act_name("k", 2), kept["k"], where)]), patch.base)
    np.testing.assert_allclose(found, by_hand, atol=1e-4)
    assert np.abs(found - clean(studied, patch)).max() > 1e-4
    np.testing.assert_allclose(
        with_edges_that_feed(studied, patch, "keys", [(0, 0)]), clean(studied, patch), atol=1e-5
    )


def patched_hooks(studied, patch, heads):
    """Hooks that patch values of some heads with activations that are kept."""
    import torch

    hooks = []
    for layer in sorted({layer for layer, _ in heads}):
        change = studied.whole_values(layer)[patch.source] - studied.whole_values(layer)[patch.base]
        seen = {}

        def see_values(value, hook, seen=seen):
            seen["v"] = value
            return value

        def see_pattern(value, hook, seen=seen):
            seen["pattern"] = value
            return value

        def move(z, hook, seen=seen, layer=layer):
            source = torch.as_tensor(studied.whole_values(layer)[patch.source])
            along = seen["pattern"] * torch.as_tensor(patch.edges)[:, None]
            return z + torch.einsum("bhqk,bkhd->bqhd", along, source - seen["v"])

        assert np.abs(change).max() > 0
        hooks += [(act_name("v", layer), see_values), (act_name("pattern", layer), see_pattern)]
        hooks.append((act_name("z", layer), move))
    return hooks


def test_all_other_heads_are_those_of_the_source(studied, task):
    patch = patch_of(task, "values")
    heads = list(product(range(3), range(2)))
    np.testing.assert_allclose(with_other_heads(studied, patch, heads), clean(studied, patch), atol=1e-5)
    z = {layer: studied.whole(act_name("z", layer)) for layer in range(3)}
    kept = [(0, 1), (2, 0)]
    edits = []
    for layer in range(3):
        where = np.zeros(z[layer].shape[:3], dtype=bool)
        where[:, :, [head for head in range(2) if (layer, head) not in kept]] = True
        edits.append(Replace(act_name("z", layer), z[layer][patch.source], where))
    by_hand = studied.logits(torch_hooks(edits), patch.base)
    np.testing.assert_allclose(with_other_heads(studied, patch, kept), by_hand, atol=1e-4)
    assert np.abs(by_hand - clean(studied, patch)).max() > 1e-2


def test_attributions_are_the_slope_of_each_heads_effect(studied, task):
    patch = patch_of(task, "values")

    def measured(logits, rows):
        return logits[:, 0, 1].sum()

    found = attributed(studied, patch, measured)
    own = clean(studied, patch)[:, 0, 1].sum()
    alone = {head: with_edges(studied, patch, [head])[:, 0, 1].sum() - own for head in product(range(3), range(2))}
    last = [alone[2, head] for head in range(2)]  # what the last layer writes is read linearly
    np.testing.assert_allclose(found[2], last, atol=1e-3)
    assert np.corrcoef(found.ravel(), [alone[head] for head in np.ndindex(3, 2)])[0, 1] > 0.9


@pytest.mark.parametrize("part", ["values", "keys", "queries"])
def test_blocks_are_patched_where_the_model_is(part):
    """The meta device stands for an accelerator: no operation takes tensors of two devices."""
    between = {act_name("pattern", 0), act_name("attn_scores", 0)}
    edges = Edges(0, part, None, np.ones((2, 1, 5, 5), dtype=bool))
    strength = torch.ones(3, device="meta") if part == "values" else None
    for one in (EdgesOfBlock(edges, 2, strength=strength), HeadsOfBlock(0, np.array([True, False, True]), 2)):
        for point, hook in torch_hooks([one]):
            own = torch.zeros((4, 3, 5, 5) if point in between else (4, 5, 3, 6), device="meta")
            assert hook(own, None).device.type == "meta"
