"""Twins with pathways beside the true one: copied and unread, dormant, or redundant.

What they are for: a comparison may not take a copy for the original, nor credit a subspace with what acts through
a path that lies dormant until someone patches it (Makelov et al. 2023, arXiv 2311.17030). All of them lead through
fresh directions of the residual stream, the last `d_head` ones; a disguise mixes those with the others.
"""

from dataclasses import replace

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.model.hook_points import param_name
from rasplens.model.transformer import HasTransformer, Transformer
from rasplens.model.twins.change_of_basis import in_basis, widening
from rasplens.model.twins.head_lists import head_of, heads_of, with_heads


def plant_decoy(model: HasTransformer, layer: int, head: int) -> Transformer:
    """The transformer with an exact copy of a head that writes into directions which nothing reads.

    The copy stands behind the last head. It attends to the same, and what it writes tells the same; but no answer
    depends on it.

    Raises:
        RaspLensError: If there is no such head, or layer norm reads every direction.
    """
    wide, fresh = _widened(model.transformer, layer, head)
    one = head_of(wide, layer, head)
    return with_heads(wide, {layer: [*heads_of(wide, layer), {**one, "W_O": fresh}]})


def plant_dormant_pathway(model: HasTransformer, layer: int, head: int) -> Transformer:
    """The transformer with a pathway that would act as a head does, from directions which nothing ever sets.

    The copy behind the last head attends as the head does, reads its values from fresh directions, and writes
    what the head writes. On no input does it write anything; who sets those directions changes the answers.

    Raises:
        RaspLensError: If there is no such head, or layer norm reads every direction.
    """
    wide, fresh = _widened(model.transformer, layer, head)
    one = {key: array for key, array in head_of(wide, layer, head).items() if key != "b_V"}
    return with_heads(wide, {layer: [*heads_of(wide, layer), {**one, "W_V": fresh.T}]})


def plant_redundant_pathway(model: HasTransformer, layer: int, head: int, share: float = 0.5) -> Transformer:
    """The transformer in which what a head gathers takes two ways: a share of it through fresh directions.

    A copy behind the last head writes its share of what the head gathers, `z`, into the fresh directions, and
    everything that comes after reads `z` there as it reads `z W_O` elsewhere: with `W_O W` where it read with `W`.

    Raises:
        RaspLensError: If there is no such head, or layer norm reads every direction.
    """
    wide, fresh = _widened(model.transformer, layer, head)
    one = head_of(wide, layer, head)
    weights = dict(wide.weights)
    start = model.transformer.config.d_model
    for name in _readers(wide, layer):
        array = weights[name].astype(np.float64)
        array[..., start:, :] = one["W_O"] @ array
        weights[name] = array.astype(wide.dtype)
    both_read = Transformer(wide.config, weights, wide.mask)
    heads = heads_of(both_read, layer)
    heads[head] = {**heads[head], "W_O": (1 - share) * one["W_O"]}
    return with_heads(both_read, {layer: [*heads, {**heads[head], "W_O": share * fresh}]})


def _readers(model: Transformer, layer: int) -> list[str]:
    """The names of what reads the residual stream behind the heads of a layer."""
    found = []
    for later in range(layer, model.config.n_layers):
        found += [param_name(f"W_{letter}", later) for letter in "QKV" if later > layer]
        found += [] if model.config.attn_only else [param_name("W_in", later)]
    return [*found, "unembed.W_U"]


def _widened(model: Transformer, layer: int, head: int) -> tuple[Transformer, np.ndarray]:
    """The transformer with a fresh direction for every dimension of a head, and what writes those to them."""
    if model.config.normalization != "none":
        raise RaspLensError(
            "Layer norm reads every direction of the residual stream: no direction is left unread."
        )
    width, extra = model.config.d_model, head_of(model, layer, head)["W_O"].shape[0]
    config = replace(model.config, d_model=width + extra, identity_v=False, identity_o=False)
    weights = in_basis(model.weights, widening(width, extra))
    wide = Transformer(config, {name: a.astype(model.dtype) for name, a in weights.items()}, model.mask)
    return wide, np.eye(extra, width + extra, k=width)
