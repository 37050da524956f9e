"""A part of some edges as it is on another input."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax

from rasplens.compare import as_studied_model
from rasplens.compare.claims.edges.attention_scores import why_not_patchable
from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched
from rasplens.compare.claims.edges.program_edges import between_positions, program_edges
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.learned import Architecture, untrained, untrained_like
from rasplens.model import HookedModel, Transformer
from rasplens.model.hook_points import act_name

PARTS = "values", "keys", "queries"


@pytest.fixture(scope="module")
def random_model(task):
    return untrained(Architecture(n_layers=2, n_heads=2, d_model=12, d_head=6), task, seed=3)


@pytest.fixture(scope="module")
def studied(random_model, task):
    return as_studied_model(random_model, task, task.held_out[:40])


BASE, SOURCE = np.arange(40), np.roll(np.arange(40), 1)
"""Inputs, by their place."""


def everywhere(task, n=40):
    return np.broadcast_to(task.visible, (n, task.n_ctx, task.n_ctx))


def own_scores(studied):
    return {layer: studied.whole(act_name("attn_scores", layer)) for layer in range(studied.n_layers)}


def test_the_base_itself_as_the_source_changes_nothing(studied, task):
    for part in PARTS:
        answers, scores = patched(studied, EdgePatch(BASE, BASE, everywhere(task), part))
        np.testing.assert_array_equal(answers, studied.answers())
        for layer, own in own_scores(studied).items():
            np.testing.assert_allclose(scores[layer], own, atol=1e-5)
        changed, _ = patched(studied, EdgePatch(BASE, SOURCE, everywhere(task), part))
        assert (changed != answers).any()  # the negative control


def test_no_edge_changes_nothing(studied, task):
    none = np.zeros((40, task.n_ctx, task.n_ctx), dtype=bool)
    for part in (*PARTS, "attention"):
        np.testing.assert_array_equal(patched(studied, EdgePatch(BASE, SOURCE, none, part))[0], studied.answers())


def by_hand(weights, task, base, source, edges, part):
    """One layer without an MLP: what heads gather with a part of some edges from the source, and the answers."""
    w, scale = weights.weights, np.sqrt(weights.config.d_head)
    streams = [w["embed.W_E"][ids] + w["pos_embed.W_pos"][: task.n_ctx] for ids in (base, source)]
    letters = {
        letter: [np.einsum("pd,hde->hpe", stream, w[f"blocks.0.attn.W_{letter}"]) for stream in streams]
        for letter in "QKV"
    }

    def scores(query, key):
        return np.einsum("hqe,hke->hqk", query, key) / scale

    query, key, value = (letters[letter] for letter in "QKV")
    own = scores(query[0], key[0])
    if part == "keys":
        own = np.where(edges, scores(query[0], key[1]), own)
    if part == "queries":
        own = np.where(edges.any(axis=-1, keepdims=True), scores(query[1], key[0]), own)
    own = np.where(task.visible if part != "attention" else task.visible & ~edges, own, -np.inf)
    pattern = softmax(own, axis=-1)
    gathered = pattern @ value[0]
    if part == "values":
        gathered = (pattern * edges) @ value[1] + (pattern * ~edges) @ value[0]
    stream = streams[0] + np.einsum("hqe,hed->qd", gathered, w["blocks.0.attn.W_O"])
    return own, stream @ weights.W_U


@pytest.mark.parametrize("part", [*PARTS, "attention"])
def test_each_part_changes_what_it_should_and_nothing_else(task, part):
    """By hand, on a model of one layer."""
    architecture = Architecture(n_layers=1, n_heads=2, d_model=12, d_head=6)
    small = untrained(architecture, task, seed=3)
    model = Transformer(small.config, {name: 3 * array for name, array in small.weights.items()}, small.mask)
    ids = task.held_out[:40]
    studied = as_studied_model(model, task, ids)
    edges = np.random.default_rng(0).random((40, task.n_ctx, task.n_ctx)) < 0.4
    edges &= between_positions(task)
    if part == "queries":
        edges[:, ::2] = False  # for a row to stay as it is
    answers, scores = patched(studied, EdgePatch(BASE, SOURCE, edges, part))
    for i in range(40):
        of_scores, logits = by_hand(model, task, ids[BASE[i]], ids[SOURCE[i]], edges[i], part)
        np.testing.assert_allclose(scores[0][i], of_scores, atol=1e-4)
        expected = logits[list(task.loss_positions)].argmax(axis=-1)
        np.testing.assert_array_equal(answers[i], expected)
    same = np.allclose(scores[0], own_scores(studied)[0], atol=1e-4)
    assert same == (part == "values")
    assert (answers != studied.answers()).any()


def test_values_along_the_programs_edges_bring_the_sources_token(offset, task):
    """What the interpreter says: the answer is what stands so far back on the source."""
    ids = task.held_out[:40]
    studied = as_studied_model(offset, task, ids)
    read = program_edges(offset.program, task, ids).gathered[("offset",)]
    answers, _ = patched(studied, EdgePatch(BASE, SOURCE, read, "values"))
    np.testing.assert_array_equal(answers, task.answers(offset.program, ids[SOURCE]))
    assert (answers != studied.answers()).any()
    others, _ = patched(studied, EdgePatch(BASE, SOURCE, between_positions(task) & ~read, "values"))
    np.testing.assert_array_equal(others, studied.answers())  # along no other edge anything comes


def test_scores_of_our_own_models_are_queries_times_keys(studied, induction, task):
    assert why_not_patchable(studied) == ""
    assert why_not_patchable(as_studied_model(induction, task, task.held_out[:2])) == ""


def test_other_scores_cannot_be_patched(random_model, task):
    """Scores that are capped, and a model without their hook point."""
    model = HookedModel(random_model)
    studied = as_studied_model(model, task, task.held_out[:2])
    for layer in range(2):
        model.hook_dict[f"blocks.{layer}.attn.hook_attn_scores"].add_hook(
            lambda scores, hook: 0.1 * (20 * scores.clamp(min=-50)).tanh() + (scores < -50) * scores,
            is_permanent=True,
        )
    assert why_not_patchable(studied) == "its attention scores are not queries times keys over a scale"


def test_the_scale_of_scores_is_measured(random_model, task):
    """Configs call it by other names, or leave it to the architecture."""
    model = HookedModel(random_model)
    model.hook_dict["blocks.1.attn.hook_attn_scores"].add_hook(lambda scores, hook: 3 * scores, is_permanent=True)
    assert why_not_patchable(as_studied_model(model, task, task.held_out[:2])) == ""
    times_3 = {"blocks.1.attn.W_Q": 3 * random_model.weights["blocks.1.attn.W_Q"]}
    if "blocks.1.attn.b_Q" in random_model.weights:
        times_3["blocks.1.attn.b_Q"] = 3 * random_model.weights["blocks.1.attn.b_Q"]
    other = Transformer(random_model.config, {**random_model.weights, **times_3}, random_model.mask)
    edges = np.broadcast_to(between_positions(task), (len(BASE), task.n_ctx, task.n_ctx))
    for part in ("keys", "queries"):
        found = [
            patched(as_studied_model(one, task, task.held_out[:40]), EdgePatch(BASE, SOURCE, edges, part))
            for one in (model, other)
        ]
        np.testing.assert_array_equal(found[0][0], found[1][0])


def test_scores_that_are_not_read_cannot_be_patched(random_model, task):
    """What the hook point of the pattern shows does not come from that of the scores."""
    model = HookedModel(random_model)
    studied = as_studied_model(model, task, task.held_out[:2])
    pattern = torch.as_tensor(studied.cache(["blocks.0.attn.hook_pattern"])["blocks.0.attn.hook_pattern"])
    model.hook_dict["blocks.0.attn.hook_pattern"].add_hook(lambda _, hook: pattern, is_permanent=True)
    assert why_not_patchable(studied) == "what is changed of its attention scores does not change its attention"


def test_a_native_bridge_says_why_it_cannot_be_patched(induction, task):
    """What passes its hook point of scores is attention already."""
    bridge = as_studied_model(induction.to_bridge(), task, task.held_out[:2], vocabulary_of(induction, task))
    assert why_not_patchable(bridge) == "its attention scores are not queries times keys over a scale"


def test_what_all_scores_of_a_query_have_in_common_makes_no_difference(random_model, task):
    """A constant vector in every key adds to all scores of a row alike: no attention changes, and no answer."""
    key, model = "blocks.1.attn.hook_k", HookedModel(random_model)
    studied = as_studied_model(model, task, task.held_out[:40])
    edges = np.random.default_rng(0).random((40, task.n_ctx, task.n_ctx)) < 0.3
    edges &= between_positions(task)
    before = {part: patched(studied, EdgePatch(BASE, SOURCE, edges, part))[0] for part in (*PARTS, "attention")}
    shift = 20 * torch.randn(random_model.config.d_head, generator=torch.Generator().manual_seed(0))
    model.hook_dict[key].add_hook(lambda k, hook: k + shift, is_permanent=True)
    shifted = as_studied_model(model, task, task.held_out[:40])
    for part, answers in before.items():
        np.testing.assert_array_equal(patched(shifted, EdgePatch(BASE, SOURCE, edges, part))[0], answers)
    model.reset_hooks(including_permanent=True)
    size = task.n_ctx, 1, random_model.config.d_head
    other = 20 * torch.randn(size, generator=torch.Generator().manual_seed(1))
    model.hook_dict[key].add_hook(lambda k, hook: k + other, is_permanent=True)
    shifted = studied.first(40)
    assert any(
        (patched(shifted, EdgePatch(BASE, SOURCE, edges, part))[0] != answers).any()
        for part, answers in before.items()
    )


def test_queries_and_keys_that_rotary_positions_turn_are_patched_as_they_meet(task):
    """With the keys of all edges patched, scores are those of the own queries with the other's keys, turned."""
    small = Architecture(n_layers=1, n_heads=2, d_model=12, d_head=6).config(task)
    config = replace(small, positions="rotary", rotary_dim=4)
    studied = as_studied_model(untrained_like(config, task.mask(1), seed=1), task, task.held_out[:40])
    assert why_not_patchable(studied) == ""
    _, found = patched(studied, EdgePatch(BASE, SOURCE, everywhere(task), "keys"))
    query, key = (studied.whole(f"blocks.0.attn.hook_rot_{letter}") for letter in "qk")
    expected = np.einsum("bqhd,bkhd->bhqk", query, key[SOURCE]) / config.attn_scale
    seen = np.broadcast_to(task.visible, expected.shape)
    np.testing.assert_allclose(found[0][seen], expected[seen], atol=1e-5)
    assert not np.allclose(studied.whole(act_name("attn_scores", 0))[seen], expected[seen], atol=1e-2)


def test_a_patch_is_of_the_heads_that_are_said(studied, task):
    """Of none, it changes nothing; of all that compute something, it is the whole."""
    patch = EdgePatch(BASE, SOURCE, everywhere(task), "values")
    none, every, first = (patched(studied, patch, heads=heads)[0] for heads in ([], studied.heads, [(0, 0)]))
    np.testing.assert_array_equal(none, studied.answers())
    np.testing.assert_array_equal(every, patched(studied, patch)[0])
    assert (first != none).any()
    assert (first != every).any()
