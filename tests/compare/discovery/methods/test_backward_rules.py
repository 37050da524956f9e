"""GIM and RelP against torch's gradients under the same rules, and AtP* against its two corrections by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from rasplens.compare.discovery.edge_graph import LOGITS
from rasplens.compare.discovery.methods.atp_star import atp_star
from rasplens.compare.discovery.methods.attribution import eap
from rasplens.compare.discovery.methods.backward_rules import _gim_rule, _relp_rule, gim, relp
from rasplens.compare.discovery.patched_run import patched_run
from rasplens.compare.discovery.problem import discovery_problem
from rasplens.compare.discovery.protocol import Protocol
from rasplens.learned import untrained_like
from rasplens.model import Config, HookedModel, causal_mask

SENDER, POINT = "L0 MLP", "blocks.0.hook_mlp_out"


@pytest.fixture(scope="module")
def asked(task):
    config = Config(
        n_layers=2, n_heads=2, d_model=12, d_head=6, n_ctx=5, d_vocab=3, d_vocab_out=task.n_logits, d_mlp=8,
        normalization="LN", activation="gelu",
    )  # fmt: skip
    model = untrained_like(config, causal_mask(2, 5), 0)
    return discovery_problem(model, task, Protocol(n_pairs=2, metric="logit_difference"))


class SofterBackward(torch.autograd.Function):
    """Softmax, with the derivative of one at temperature 2, as `gim-explain` has it."""

    @staticmethod
    def forward(context, scores):
        context.save_for_backward(scores)
        return scores.softmax(-1)

    @staticmethod
    def backward(context, given):
        softer = (context.saved_tensors[0] / 2).softmax(-1)
        return softer * (given - (given * softer).sum(-1, keepdim=True))


def share_of_gradient(share):
    def let_through(value, hook):
        value = value * 1  # the hook is on a copy, so that it counts once
        value.register_hook(lambda gradient: gradient * share)
        return value

    return let_through


def gim_hooks(model):
    kept = {}
    yield from ((name, lambda value, hook: value.detach()) for name in model.hook_dict if "hook_scale" in name)
    for layer in range(model.cfg.n_layers):
        name = f"blocks.{layer}.attn.hook_"
        for letter, share in (("q", 0.25), ("k", 0.25), ("v", 0.5)):
            yield f"{name}{letter}", share_of_gradient(share)
        yield f"{name}attn_scores", lambda value, hook, layer=layer: kept.update({layer: value})
        yield f"{name}pattern", lambda value, hook, layer=layer: SofterBackward.apply(kept[layer])


def relp_hooks(model):
    kept = {}
    constant = "hook_scale", "hook_pattern"
    yield from ((name, lambda value, hook: value.detach()) for name in model.hook_dict if name.endswith(constant))
    for layer in range(model.cfg.n_layers):
        name = f"blocks.{layer}.mlp.hook_"
        yield f"{name}pre", lambda value, hook, layer=layer: kept.update({layer: value})
        yield f"{name}post", lambda value, hook, layer=layer: kept[layer] * (value / kept[layer]).detach()


def effect_in_torch(asked, hooks_of):
    """The sum of the scores of a sender's edges, by torch: its change times the gradient by what it writes."""
    hooked, kept = HookedModel(asked.transformer).double(), {}
    tokens, others = torch.as_tensor(asked.tokens), torch.as_tensor(asked.others)

    def keep(value, hook):
        kept["clean"] = value.detach().requires_grad_()
        return kept["clean"]

    hooks = [*hooks_of(hooked), (POINT, keep)]
    logits = hooked.run_with_hooks(tokens, fwd_hooks=hooks)[:, list(asked.places)]
    right, wrong = (torch.as_tensor(codes)[..., None] for codes in (asked.right, asked.wrong))
    differences = (logits.gather(-1, wrong) - logits.gather(-1, right))[..., 0]
    counts = torch.as_tensor(asked.counts)
    ((differences * counts).sum(-1) / counts.sum(-1)).mean().backward()
    change = hooked.run_with_cache(others)[1][POINT] - kept["clean"]
    return float((change * kept["clean"].grad).sum().detach())


@pytest.mark.parametrize(("method", "hooks_of"), [(gim, gim_hooks), (relp, relp_hooks)])
def test_the_gradient_is_that_of_torch_under_the_same_rules(asked, method, hooks_of):
    from_sender = np.array([edge.startswith(f"{SENDER}->") for edge in asked.graph.edges])
    expected, found = effect_in_torch(asked, hooks_of), method(asked)
    assert found[from_sender].sum() == pytest.approx(expected, rel=1e-3)
    assert abs(expected - effect_in_torch(asked, lambda model: ())) > 1e-3 * abs(expected)  # rules do change it


@pytest.mark.parametrize("rule", [_gim_rule, _relp_rule])
def test_rules_leave_the_forward_pass_as_it_is(asked, rule):
    logits, written = patched_run(asked.transformer, rule())(jnp.asarray(asked.tokens))
    np.testing.assert_allclose(logits, asked.clean[0], atol=1e-12)
    np.testing.assert_allclose(written, asked.clean[1], atol=1e-12)


def test_relevance_does_not_pass_through_queries_and_keys(asked):
    varying = np.array([not edge.startswith("pos_embed") for edge in asked.graph.edges])
    into = np.array([edge.endswith((".q", ".k")) for edge in asked.graph.edges])
    found = relp(asked)
    assert not found[into].any()
    assert found[varying & ~into].all()


def test_atp_star_computes_attention_anew_and_drops_one_layer_s_gradient_at_a_time(asked):
    """Into the last layer's queries: what the patched pattern changes, times the gradient by the pattern."""
    hooked, kept, edge = HookedModel(asked.transformer).double(), {}, "L0H1->L1H0.q"
    graph, point = asked.graph, "blocks.1.attn.hook_pattern"
    patched = np.zeros(len(graph.edges))
    patched[graph.edges.index(edge)] = 1
    patterns = []
    for matrix in (asked.matrix(0 * patched), asked.matrix(patched)):

        def keep(name, value):
            if name == point:
                patterns.append(np.asarray(value))
            return value

        patched_run(asked.transformer, keep)(jnp.asarray(asked.tokens), matrix, asked.instead)

    def remember(value, hook):
        kept["pattern"] = value.detach().requires_grad_()
        return kept["pattern"]

    logits = hooked.run_with_hooks(torch.as_tensor(asked.tokens), fwd_hooks=[(point, remember)])
    logits = logits[:, list(asked.places)]
    right, wrong = (torch.as_tensor(codes)[..., None] for codes in (asked.right, asked.wrong))
    differences = (logits.gather(-1, wrong) - logits.gather(-1, right))[..., 0]
    counts = torch.as_tensor(asked.counts)
    ((differences * counts).sum(-1) / counts.sum(-1)).mean().backward()
    effects = ((patterns[1] - patterns[0]) * kept["pattern"].grad.numpy()).sum((1, 2, 3))
    found = dict(zip(graph.edges, atp_star(asked), strict=True))
    # Without layer 1 itself the effect is zero. Without layer 0, which comes before, it is what it was.
    assert found[edge] == pytest.approx(np.abs(effects).sum(), rel=1e-3)
    assert found[edge] > 0


def test_atp_star_is_exact_in_size_where_damage_is_linear(asked):
    """What goes into the logits passes through no layer: of each pair the size of its effect."""
    last = [i for i, edge in enumerate(asked.graph.edges) if edge.endswith(f"->{LOGITS}")]
    by_pair = np.stack([eap(asked.of_pair(pair)) for pair in range(len(asked.tokens))])
    np.testing.assert_allclose(atp_star(asked)[last], np.abs(by_pair).mean(axis=0)[last], rtol=1e-3)
