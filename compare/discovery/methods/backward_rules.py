"""Edge attribution patching with other rules for the backward pass: GIM and RelP.

The forward pass is the model's own. Only the derivatives of some steps are replaced. So each method is `eap` on a
run whose activations pass through a rule.

Source: Edin et al. 2025, "GIM: Improved Interpretability for Large Language Models" (arXiv 2505.17630), with the
defaults of the authors' package `gim-explain` 0.1.4. Rezaei Jafari et al. 2025, "RelP: Faithful and Efficient
Circuit Discovery via Relevance Patching" (arXiv 2508.21258, table 1).
"""

from dataclasses import replace

import jax
import jax.numpy as jnp

from rasplens.compare.discovery.methods.attribution import eap
from rasplens.compare.discovery.patched_run import patched_run
from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.model.forward import Hook, masked_softmax

TEMPERATURE = 2.0
"""Of the softmax whose derivative GIM takes."""

SHARED = {"hook_q": 1 / 4, "hook_k": 1 / 4, "hook_v": 1 / 2}
"""The share of their gradient that GIM lets through: the factors of a product divide it among them."""


def gim(problem: Problem) -> Scores:
    """Gradient interaction modifications: EAP with gradients that take account of interactions.

    The scale of layer norms counts as constant. The softmax of attention has the derivative of a softer one.
    Queries and keys get a quarter of their gradient, and values half.
    """
    return eap(replace(problem, run=patched_run(problem.transformer, _gim_rule())))


def relp(problem: Problem) -> Scores:
    """Relevance patching: EAP with the coefficients of layer-wise relevance propagation instead of gradients.

    The scale of layer norms, attention patterns and the ratio of a neuron's output to its input count as constant.
    So edges into queries and keys get a score of zero.
    """
    return eap(replace(problem, run=patched_run(problem.transformer, _relp_rule())))


def _gim_rule() -> Hook:
    scores: list[jax.Array] = []

    def rule(name: str, value: jax.Array) -> jax.Array:
        kind = name.rpartition(".")[2]
        if kind == "hook_scale":
            return jax.lax.stop_gradient(value)
        if kind in SHARED:
            return _with_derivative_of(value, SHARED[kind] * value)
        if kind == "hook_attn_scores":
            scores.append(value)
        if kind == "hook_pattern":
            return _with_derivative_of(value, TEMPERATURE * masked_softmax(scores[-1] / TEMPERATURE, jnp))
        return value

    return rule


def _relp_rule() -> Hook:
    before: list[jax.Array] = []

    def rule(name: str, value: jax.Array) -> jax.Array:
        kind = name.rpartition(".")[2]
        if kind in ("hook_scale", "hook_pattern"):
            return jax.lax.stop_gradient(value)
        if kind == "hook_pre":
            before.append(value)
        if kind == "hook_post":
            factor = jnp.where(before[-1] == 0, 0.0, value / jnp.where(before[-1] == 0, 1.0, before[-1]))
            return _with_derivative_of(value, before[-1] * jax.lax.stop_gradient(factor))
        return value

    return rule


def _with_derivative_of(value: jax.Array, other: jax.Array) -> jax.Array:
    """The value itself, which is differentiated as if it were another."""
    return jax.lax.stop_gradient(value) + other - jax.lax.stop_gradient(other)
