"""TransformerLens's own edge attribution patching, asked about a model here: a peer of `attribution`.

It takes the gradient at the other input, and attributes the way back to the clean one; its scores are those of
EAP-IG with a single point, at the far end of the way.

Source: `transformer_lens.tools.analysis.attribution_patch`.
"""

from types import SimpleNamespace
from typing import Any

import array_api_compat.torch as xp
import jax
import jax.numpy as jnp
import numpy as np
import torch
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint
from transformer_lens.tools.analysis.attribution_patching import EdgeAttributionConfig, Node, attribution_patch

from rasplens.compare.discovery.patched_run import in_float64
from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.errors import RaspLensError
from rasplens.model import Transformer
from rasplens.model.config import hook_names
from rasplens.model.forward import ForwardPass
from rasplens.model.hooked import attach

READS = "hook_q_input", "hook_k_input", "hook_v_input"
"""Hook points that TransformerLens places in the attention and `forward` in the block."""


def eap_transformer_lens(problem: Problem) -> Scores:
    """Edge attribution patching by TransformerLens; edges from positions, which it does not know, get zero.

    Raises:
        RaspLensError: If edges are not ablated by other inputs.
    """
    if problem.protocol.ablation != "resample":
        raise RaspLensError(
            "TransformerLens attributes to other inputs only, which is ablation='resample'; got "
            f"{problem.protocol.ablation!r}. Use that, or the method 'eap'."
        )
    bridge, total = _Bridge(problem.transformer).eval(), dict.fromkeys(problem.graph.edges, 0.0)
    for pair in range(len(problem.tokens)):
        for edge, score in _attributed(bridge, problem.of_pair(pair)).items():
            if problem.transformer.config.attn_only and " MLP" in edge:
                continue
            total[edge] -= score  # what it attributes is the way back
    return np.array(list(total.values())) / len(problem.tokens)


def _attributed(bridge: "_Bridge", problem: Problem) -> dict[str, float]:
    """Return TransformerLens's score of each edge on a single pair, by our names, all positions together."""

    def damage(logits: torch.Tensor) -> torch.Tensor:
        return _Damage.apply(logits, problem)

    ids = torch.as_tensor(problem.tokens), torch.as_tensor(problem.others)
    found = attribution_patch(bridge, *ids, damage, EdgeAttributionConfig("edge"))
    total: dict[str, float] = {}
    for (sender, receiver), score in (found.edge_scores or {}).items():
        edge = f"{_name(sender)}->{_name(receiver)}"
        total[edge] = total.get(edge, 0.0) + score
    return total


def _name(node: Node) -> str:
    """A node's name in an `EdgeGraph`."""
    if node.layer is None or node.kind == "logits":
        return node.kind
    if node.head is None:
        return f"L{node.layer} MLP"
    letter = "" if node.kind == "attn_head_out" else f".{node.kind[0]}"
    return f"L{node.layer}H{node.head}{letter}"


class _Damage(torch.autograd.Function):
    """The damage of a problem, which JAX computes and differentiates, as a function in torch."""

    @staticmethod
    @in_float64
    def forward(ctx: Any, logits: torch.Tensor, problem: Problem) -> torch.Tensor:
        def damage(logits: jax.Array) -> jax.Array:
            return problem.damages_of(logits[:, jnp.asarray(problem.places)]).mean()

        value, gradient = jax.value_and_grad(damage)(jnp.asarray(logits.detach().numpy()))
        ctx.save_for_backward(torch.tensor(np.asarray(gradient)))
        return torch.tensor(float(value), dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, *outer: torch.Tensor) -> tuple[torch.Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return outer[0] * gradient, None


class _Bridge(HookedRootModule):
    """A model with the hook points that TransformerLens's analysis asks of its `TransformerBridge`.

    Where the model has no MLPs, the bridge has some that write nothing.
    """

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        self.transformer_config, self.mask = transformer.config, torch.tensor(transformer.mask)
        self.weights = {name: torch.tensor(array).double() for name, array in transformer.weights.items()}
        n_layers = transformer.config.n_layers
        flags = {"use_attn_result": True, "use_split_qkv_input": True, "use_hook_mlp_in": True}
        self.cfg = SimpleNamespace(n_layers=n_layers, n_heads=transformer.config.n_heads, **flags)
        blocks = [f"blocks.{layer}" for layer in range(n_layers)]
        split = [f"{block}.{name}" for block in blocks for name in (*READS, "hook_mlp_in", "hook_mlp_out")]
        for name in dict.fromkeys(_bridged(name) for name in (*hook_names(transformer.config), *split)):
            attach(self, name, HookPoint())
        self.setup()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits; gradients are of activations, not of weights, which are constants here."""

        def hook(name: str, value: torch.Tensor) -> torch.Tensor:
            if self.transformer_config.attn_only and name.endswith("hook_resid_post"):
                block = name.removesuffix("hook_resid_post")
                read = self.hook_dict[f"{block}hook_mlp_in"](value)
                value = value + self.hook_dict[f"{block}hook_mlp_out"](0 * read)
            if name == "hook_embed":
                value = value.requires_grad_()
            return self.hook_dict[_bridged(name)](value)

        return ForwardPass(self.weights, self.mask, self.transformer_config, hook, xp, split=True).logits(tokens)

    def set_use_attn_result(self, on: bool) -> None:
        """Always on, and so the others."""

    def set_use_split_qkv_input(self, on: bool) -> None:
        """Always on."""

    def set_use_hook_mlp_in(self, on: bool) -> None:
        """Always on."""


def _bridged(name: str) -> str:
    """The name that a hook point of `forward` has in TransformerLens."""
    block, _, last = name.rpartition(".")
    return f"{block}.attn.{last}" if last in READS else name
