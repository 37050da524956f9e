"""The transformer as a pure JAX function of its weights: for training, vmap and grad."""

from collections.abc import Callable, Mapping

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

    It can be jitted, differentiated and vmapped over weights; config and mask are constants of it.
    """

    def logits(weights: JaxWeights, tokens: jax.Array) -> jax.Array:
        return forward(weights, jnp.asarray(mask), config, tokens, hook, jnp)

    return logits
