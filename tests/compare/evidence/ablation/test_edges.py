"""Edges of random models: which there are, and that computing only what changes gives what a hook gives."""

import numpy as np
import pytest
import torch

from rasplens.compare import CompareConfig, as_studied_model
from rasplens.compare.evidence.ablation.edges import (
    Edge,
    attended_edges,
    edge_effects,
    replaced_attention,
    without_edges,
)
from rasplens.learned import Architecture
from rasplens.model import HookedModel

SHAPES = {
    "two layers with MLPs": Architecture(n_layers=2, n_heads=2, d_model=12, d_head=6, d_mlp=5, bias=True),
    "layer norm": Architecture(n_layers=2, n_heads=2, d_model=12, d_head=6, d_mlp=5, normalization="LN"),
    "three layers": Architecture(n_layers=3, n_heads=1, d_model=8, d_head=8),
    "smeared keys": Architecture(
        n_layers=2, n_heads=2, d_model=12, d_head=6, positions="sinusoidal_qk", smeared_keys=True
    ),
}


@pytest.fixture(params=SHAPES)
def transformer(request, random_transformer, task):
    shape = SHAPES[request.param]
    return random_transformer(shape.config(task), biases=shape.bias, seed=3)


@pytest.fixture
def studied(transformer, task):
    return as_studied_model(transformer, task, task.held_out[:10])


def test_edges_are_those_that_get_attention_and_reach_an_answer(transformer, studied, task):
    last = studied.n_layers - 1
    cache = transformer.run_with_cache(studied.ids)[1]
    attended = [cache[f"blocks.{layer}.attn.hook_pattern"].max(axis=(0, 1)) > 1e-3 for layer in range(last + 1)]
    expected = [
        Edge(layer, query, key)
        for layer in range(last + 1)
        for query in (range(8) if layer < last else task.loss_positions)  # others reach no answer
        for key in range(query + 1)
        if attended[layer][query, key]
    ]
    assert attended_edges(studied) == expected
    effects = edge_effects(studied).table
    mean = [cache[f"blocks.{e.layer}.attn.hook_pattern"][:, :, e.query, e.key].mean() for e in expected]
    np.testing.assert_allclose(effects["attention"], mean, atol=1e-12)


def test_what_an_edge_changes_is_computed_as_a_hook_would_have_it(transformer, studied, task, monkeypatch):
    model = HookedModel(transformer)
    hooked = as_studied_model(model, task, studied.ids)
    seen = []
    point = model.hook_dict["blocks.0.attn.hook_pattern"]
    point.add_hook(lambda value, hook: seen.append(len(value)), is_permanent=True)
    assert model.is_hooked
    forwarded = []
    computed = HookedModel.forward_from
    monkeypatch.setattr(HookedModel, "forward_from", lambda *given: forwarded.append(1) or computed(*given))
    ours = edge_effects(studied)
    assert forwarded
    forwarded.clear()
    theirs = edge_effects(hooked)
    assert seen  # a hook of the user's own is not passed by
    assert not forwarded
    np.testing.assert_allclose(ours.table.to_numpy(float), theirs.table.to_numpy(float), atol=1e-12)
    assert ours.table["resample_kl"].max() > 1e-3


def test_many_inputs_at_once_or_few_are_the_same(studied, task):
    edges = attended_edges(studied)
    most = CompareConfig.edge_answers // len(task.loss_positions)
    many = studied.on(task.held_out[:most])
    others = {layer: np.zeros_like(many.pattern(layer)) for layer in range(many.n_layers)}
    few = {layer: zeros[:10] for layer, zeros in others.items()}
    together = [edited.logits[:, :10] for edited in without_edges(many, edges, others)]
    alone = [edited.logits for edited in without_edges(studied, edges, few)]
    assert len(together) >= len(alone)
    flat = [[one for part in parts for one in part] for parts in (together, alone)]
    assert len(flat[0]) == len(flat[1]) == len(edges)
    for one, other in zip(*flat, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_last_layer_reaches_the_answer_of_its_own_row_only(studied):
    others = {layer: np.zeros_like(studied.pattern(layer)) for layer in range(studied.n_layers)}
    edges, reached = attended_edges(studied), []
    for edited in without_edges(studied, edges, others):
        assert edited.logits.shape[1:3] == (10, len(edited.answers))
        reached += [list(edited.answers)] * len(edited.logits)
    for edge, answers in zip(edges, reached, strict=True):
        places = [studied.task.loss_positions[i] for i in answers]
        assert places == (list(studied.task.loss_positions) if edge.layer < studied.n_layers - 1 else [edge.query])


def test_a_row_keeps_its_sum_and_its_proportions():
    rng = np.random.default_rng(0)
    row = torch.tensor(0.7 * rng.dirichlet(np.ones(5), size=(6, 2)))
    wanted = torch.tensor(rng.random((6, 2, 3)) * 0.5)
    rows = replaced_attention(row, [2, 0, 4], wanted)
    torch.testing.assert_close(rows.sum(-1), row.sum(-1, keepdim=True).expand(6, 2, 3))
    for i, key in enumerate([2, 0, 4]):
        torch.testing.assert_close(rows[..., i, key], wanted[..., i])
        torch.testing.assert_close(rows[..., i, 1] / rows[..., i, 3], row[..., 1] / row[..., 3])
    assert not torch.allclose(rows[..., 0, 0], row[..., 0])


def test_a_row_that_attends_to_nothing_else_loses_what_its_key_loses():
    row = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    rows = replaced_attention(row, [1], torch.tensor([[0.25], [0.0]]))
    assert rows.tolist() == [[[0, 0.25, 0]], [[0, 0, 0]]]
