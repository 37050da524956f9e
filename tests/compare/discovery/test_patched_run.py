"""Edges by hand: nothing patched is the model, all edges to the logits are the other input's."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from rasplens.compare.discovery.methods.patching import exact_edges
from rasplens.compare.discovery.problem import discovery_problem
from rasplens.compare.discovery.protocol import Protocol
from rasplens.model import HookedModel


@pytest.fixture(scope="module")
def asked(random_model, task):
    return discovery_problem(random_model, task, Protocol(n_pairs=8))


def patch(asked, *edges):
    return asked.matrix(asked.graph.mask_of(edges))


def logits(asked, patched):
    return np.asarray(asked.run(jnp.asarray(asked.tokens), patched, asked.instead)[0])


@pytest.mark.slow
def test_nothing_patched_is_the_model(asked, random_model):
    np.testing.assert_allclose(logits(asked, patch(asked)), random_model(asked.tokens), atol=1e-5)


@pytest.mark.slow
def test_all_edges_to_the_logits_are_the_other_input(asked, random_model):
    edges = [edge for edge in asked.graph.edges if edge.endswith("->logits")]
    np.testing.assert_allclose(logits(asked, patch(asked, *edges)), random_model(asked.others), atol=1e-5)
    np.testing.assert_allclose(
        logits(asked, patch(asked, *asked.graph.edges)), random_model(asked.others), atol=1e-5
    )


def test_half_an_edge_is_half_way(asked, random_model):
    change = random_model.W_E[asked.others] - random_model.W_E[asked.tokens]
    expected = random_model(asked.tokens) + 0.5 * change @ random_model.W_U
    np.testing.assert_allclose(logits(asked, 0.5 * patch(asked, "embed->logits")), expected, atol=1e-5)


@pytest.mark.parametrize("letter", "qkv")
def test_an_edge_to_a_head_is_what_hooks_on_its_queries_keys_and_values_do(asked, random_model, letter):
    """In torch, by another way: the sender's change, through the receiver's own weight."""
    model, name = HookedModel(random_model), f"blocks.1.attn.hook_{letter}"
    point = "blocks.0.attn.hook_result"
    own, other = (
        model.run_with_cache(torch.as_tensor(ids), names_filter=point)[1][point][:, :, 1]
        for ids in (asked.tokens, asked.others)
    )
    change = (other - own) @ torch.tensor(random_model.weights[f"blocks.1.attn.W_{letter.upper()}"][0])

    def add(value, hook):
        edited = value.clone()
        edited[:, :, 0] += change
        return edited

    with torch.no_grad():
        expected = model.run_with_hooks(torch.as_tensor(asked.tokens), fwd_hooks=[(name, add)]).numpy()
    np.testing.assert_allclose(logits(asked, patch(asked, f"L0H1->L1H0.{letter}")), expected, atol=1e-5)


def test_every_edge_is_live(random_model, task):
    zero = discovery_problem(random_model, task, Protocol(n_pairs=8, ablation="zero", metric="l2"))
    assert np.abs(exact_edges(zero)).min() > 1e-7
