"""The transformer as a pure JAX function of its weights: for training, vmap and grad."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rasplens.model.config import Config
from rasplens.model.forward import Hook, forward, no_hook

JaxWeights = Mapping[str, jax.Array]


def jax_forward(
    config: Config, mask: np.ndarray, hook: Hook = no_hook
) -> Callable[[JaxWeights, jax.Array], jax.Array]:
    """The function (weights, tokens `[batch, pos]`) → logits `[batch, pos, d_vocab_out]`.

    It can be jitted, differentiated and vmapped over weights; config and mask are constants of it. Products have
    full precision on every device: an accelerator's own default rounds what a compiled model keeps apart.
    """

    def logits(weights: JaxWeights, tokens: jax.Array) -> jax.Array:
        with jax.default_matmul_precision("highest"):
            return forward(weights, jnp.asarray(mask), config, tokens, hook, jnp)

    return logits


def for_members(member: Callable[..., Any]) -> Callable[..., Any]:
    """The program of one member of an ensemble, on trees of arrays that have the members as their first axis.

    On an accelerator all members are vectorised. On CPU one at a time is as fast as many (its arithmetic units are
    full already), and each member then comes out bit by bit as if it were alone.
    """
    if jax.default_backend() != "cpu":
        return jax.vmap(member)
    return lambda *trees: jax.lax.map(lambda own: member(*own), trees)
