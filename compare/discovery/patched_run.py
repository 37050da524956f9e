"""A forward pass in which each edge carries what its sender writes, or something else, or any mixture.

All methods are functions of this one: patching sets edges one by one, attribution differentiates it, pruning
optimises its mixtures.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from rasplens.compare.discovery.edge_graph import LOGITS, POS_EMBED, EdgeGraph, edge_graph
from rasplens.model import Transformer
from rasplens.model.forward import ForwardPass, Hook, no_hook
from rasplens.model.hook_points import act_name

Run = Callable[..., tuple[jax.Array, jax.Array]]
"""From tokens `[batch, ctx]`, how much of each edge is patched `[receiver, sender]`, what it then carries
`[sender, batch, ctx, d_model]`, and what is added to what each receiver reads `[receiver, batch, ctx,
d_model]`, the logits `[batch, ctx, logit]` and what each sender wrote."""


P = ParamSpec("P")
T = TypeVar("T")


def in_float64(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with JAX in float64 while it runs: in float32 small effects drown in rounding."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return run


@in_float64
def patched_run(model: Transformer, then: Hook = no_hook) -> Run:
    """The forward pass of a model with its edges open, float64 in JAX.

    Args:
        model: The model.
        then: What each activation passes through besides, after its edges are patched.
    """
    graph = edge_graph(model.config)
    weights = {name: jnp.asarray(array, jnp.float64) for name, array in model.weights.items()}
    mask, order = jnp.asarray(model.mask), {name: i for i, name in enumerate(graph.receivers)}

    @in_float64
    def run(
        tokens: jax.Array,
        patched: jax.Array | None = None,
        instead: jax.Array | None = None,
        added: jax.Array | None = None,
    ) -> tuple[jax.Array, jax.Array]:
        written: list[jax.Array] = []

        def read(first: int, n: int, value: jax.Array) -> jax.Array:
            """Return the inputs of some receivers, one after the other: `[batch, ctx, receiver, d_model]`."""
            if patched is not None and instead is not None:
                change = instead[: len(written)] - jnp.stack(written)
                value = value + jnp.einsum("rs,sbpd->bprd", patched[first : first + n, : len(written)], change)
            return value if added is None else value + jnp.moveaxis(added[first : first + n], 0, 2)

        def hook(name: str, value: jax.Array) -> jax.Array:
            if (receivers := _receivers(graph, model.config.n_layers, name)) is not None:
                first, n = order[receivers[0]], len(receivers)
                copies = value if value.ndim == 4 else value[:, :, None]
                edited = read(first, n, copies)
                return edited if value.ndim == 4 else edited[:, :, 0]
            if name == "hook_embed" or (name == "hook_pos_embed" and POS_EMBED in graph.senders):
                written.append(value)
            elif name.endswith("hook_result"):
                written.extend(value[:, :, head] for head in range(value.shape[2]))
            elif name.endswith("hook_mlp_out"):
                written.append(value)
            return value

        def both(name: str, value: jax.Array) -> jax.Array:
            return then(name, hook(name, value))

        logits = ForwardPass(weights, mask, model.config, both, jnp, split=True).logits(tokens)
        return logits, jnp.stack(written)

    return run


def _receivers(graph: EdgeGraph, n_layers: int, hook_name: str) -> list[str] | None:
    """The receivers that read at a hook point, in order; None where none does."""
    if hook_name == act_name("resid_post", n_layers - 1):
        return [LOGITS]
    if hook_name.endswith("hook_mlp_in"):
        return [f"L{hook_name.split('.')[1]} MLP"]
    if hook_name.endswith("_input"):
        layer, letter = hook_name.split(".")[1], hook_name.removesuffix("_input")[-1]
        return [name for name in graph.receivers if name.startswith(f"L{layer}H") and name.endswith(f".{letter}")]
    return None


def patched_of(graph: EdgeGraph, patched: np.ndarray) -> np.ndarray:
    """From a value for each edge, `[..., edge]`, the matrix `[..., receiver, sender]`; zero without an edge."""
    matrix = np.zeros((*patched.shape[:-1], len(graph.receivers), len(graph.senders)), dtype=np.float32)
    matrix[..., graph.pairs[:, 0], graph.pairs[:, 1]] = patched
    return matrix
