"""Twins with attention from every position to itself that nothing depends on."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.model.hook_points import act_name
from rasplens.model.transformer import HasTransformer, Transformer
from rasplens.model.twins.change_of_basis import in_basis, widening
from rasplens.model.twins.head_lists import head_of, heads_of, with_heads

N_PROBES = 64
"""The number of random inputs that test whether a head attends by position alone."""

ALIKE = 1e-10
"""The largest difference of its pattern between them."""

_SHARP = 80.0
"""By how much a position's own score lies above all others where it attends to itself: e^-80 is nothing."""


def add_self_edges(model: HasTransformer, layer: int, head: int, share: float = 0.25) -> Transformer:
    """The transformer with a head that also attends to its own position, and a head that makes up for it.

    Of a head with pattern P and values v, the new pattern is `P' = (1 - a) P + a I` with share a. Divided by
    1 - a it gives `P v + a / (1 - a) v`, and a second head behind the last one, which attends to its own position
    alone, takes away the second term. Softmax gives P' where scores are its logarithm, which only depends on
    positions; they are read from fresh directions, one a position. So the head itself has to attend by position
    alone: for others no scores are known that give each row the same share of itself.

    The function is the same on inputs of all `n_ctx` positions, and on shorter ones if the mask is causal.

    Args:
        model: The model.
        layer: The head's layer.
        head: The head's number in it.
        share: How much of its attention goes to its own position, between 0 and 1.

    Raises:
        RaspLensError: If there is no such head, it attends by more than position, it does not see itself
            everywhere where it sees anything, or the model has layer norm, smeared keys or no learned positions.
    """
    model = model.transformer
    own = head_of(model, layer, head)
    config = model.config
    if config.normalization != "none" or config.smeared_keys or config.positions != "learned":
        raise RaspLensError(
            f"Self-edges need learned positions, no layer norm and no smeared keys; got {config.positions} "
            f"positions, normalization={config.normalization!r}, smeared_keys={config.smeared_keys}."
        )
    if not 0 < share < 1:
        raise RaspLensError(f"share must lie between 0 and 1; got {share}.")
    pattern = _pattern_by_position(model, layer, head)
    sees = model.mask[layer]
    if not sees.diagonal()[sees.any(axis=1)].all():
        raise RaspLensError(f"Some positions do not see themselves in layer {layer}, so they get no self-edge.")
    wide = _with_place_directions(model)
    wanted = (1 - share) * pattern + share * np.eye(config.n_ctx)
    values = {"W_V": np.pad(own["W_V"], ((0, config.n_ctx), (0, 0)))} | {k: own[k] for k in ("b_V",) if k in own}
    output = np.pad(own["W_O"], ((0, 0), (0, config.n_ctx)))
    scores = np.log(np.maximum(wanted, np.exp(-_SHARP)))
    attends = _by_position(wide, scores) | values | {"W_O": output / (1 - share)}
    makes_up = _by_position(wide, _SHARP * np.eye(config.n_ctx)) | values | {"W_O": -share / (1 - share) * output}
    heads = heads_of(wide, layer)
    heads[head] = attends
    return with_heads(wide, {layer: [*heads, makes_up]})


def _pattern_by_position(model: Transformer, layer: int, head: int) -> Float[np.ndarray, "query key"]:
    """The pattern of a head that attends by position alone, seen on random inputs.

    Raises:
        RaspLensError: If it attends by more than that.
    """
    rng = random_streams.rng(0, "twins")
    tokens = rng.integers(0, model.config.d_vocab, (N_PROBES, model.config.n_ctx))
    _, cache = model.astype(np.float64).run_with_cache(tokens)
    patterns = cache[act_name("pattern", layer)][:, head]
    if np.abs(patterns - patterns[:1]).max() > ALIKE:
        raise RaspLensError(
            f"Head {head} of layer {layer} attends by more than position: the share of its self-edges "
            "would depend on the input."
        )
    return patterns[0]


def _with_place_directions(model: Transformer) -> Transformer:
    """The transformer with a fresh direction for every position, which is 1 there and 0 elsewhere."""
    width, n = model.config.d_model, model.config.n_ctx
    config = replace(model.config, d_model=width + n, identity_v=False, identity_o=False)
    weights = in_basis(model.weights, widening(width, n))
    weights["pos_embed.W_pos"][:, width:] = np.eye(n)
    return Transformer(config, {name: a.astype(model.dtype) for name, a in weights.items()}, model.mask)


def _by_position(model: Transformer, scores: Float[np.ndarray, "query key"]) -> dict[str, np.ndarray]:
    """Queries and keys that give scores by position alone."""
    n, width = len(scores), model.config.d_model
    places = np.eye(n, width, k=width - n).T
    return {"W_Q": places * model.config.attn_scale, "W_K": places @ scores.T}
