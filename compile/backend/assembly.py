"""From heads and neurons, each at its place, to the arrays of one transformer and a record of who is who."""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from rasplens.compile.backend.attention_heads import Head, build_heads, sharpness
from rasplens.compile.backend.neurons import Neurons, build_neurons
from rasplens.compile.backend.residual_layout import Layout
from rasplens.compile.backend.schedule import ATTENTION, Places, computed, n_layers
from rasplens.compile.ir import IndicesNode, TokensNode
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.model import Config, Transformer
from rasplens.model.hook_points import param_name

WEIGHTS = np.float32
"""The dtype of weights."""


Part = TypeVar("Part", Head, Neurons)


@dataclass(frozen=True, eq=False)
class Assembly:
    """A transformer and what its parts compute.

    Attributes:
        transformer: The weights.
        heads: By (layer, head), the id of the node that the head computes.
        neurons: By (layer, first neuron, end), the id of the node that these neurons compute.
    """

    transformer: Transformer
    heads: dict[tuple[int, int], int]
    neurons: dict[tuple[int, int, int], int]


def assemble(layout: Layout, places: Places, inputs: InputSpace) -> Assembly:
    """The transformer that computes every variable of the layout at its place."""
    depth = n_layers(places)
    n_ctx = inputs.max_len + (layout.bos is not None)
    scale = sharpness(n_ctx)
    heads: list[list[tuple[int, Head]]] = [[] for _ in range(depth)]
    neurons: list[dict[int, Neurons]] = [{} for _ in range(depth)]
    for variable, layer, kind in computed(layout, places):
        if kind == ATTENTION:
            heads[layer] += [(variable, _as_held(head)) for head in build_heads(variable, layout, scale)]
        else:
            neurons[layer][variable] = _as_held(build_neurons(variable, layout))
    every_head = [head for blocks in heads for _, head in blocks]
    config = Config(
        n_layers=depth,
        n_heads=max([1, *(len(blocks) for blocks in heads)]),
        d_model=layout.d_model,
        d_head=max([1, *(max(head.W_Q.shape[1], head.W_V.shape[1]) for head in every_head)]),
        n_ctx=n_ctx,
        d_vocab=len(inputs.vocab) + (layout.bos is not None) + (layout.pad is not None),
        d_vocab_out=_unembedding(layout).shape[1],
        d_mlp=max([0, *(sum(block.W_in.shape[1] for block in blocks.values()) for blocks in neurons)]),
        positions="learned" if _position_embedding(layout, inputs).any() else "none",
        attn_scale=1.0,
    )
    head_places, neuron_places = _head_places(heads), _neuron_places(neurons)
    weights = _embeddings(layout, inputs, config) | {"unembed.W_U": _unembedding(layout)}
    weights = {name: array.astype(WEIGHTS, copy=False) for name, array in weights.items()}
    for layer in range(depth):
        weights |= _attention_weights(layer, [head for _, head in heads[layer]], config)
        heads[layer].clear()  # large models are not held twice
        if not config.attn_only:
            weights |= _mlp_weights(layer, list(neurons[layer].values()), config)
        neurons[layer].clear()
    for array in weights.values():
        array.flags.writeable = False
    transformer = Transformer(config, weights, np.repeat(_mask(layout, inputs)[None], depth, axis=0))
    return Assembly(transformer, head_places, neuron_places)


def _as_held(part: Part) -> Part:
    """Heads or neurons as their weights are held."""
    return replace(part, **{field.name: getattr(part, field.name).astype(WEIGHTS) for field in fields(part)})


def _embeddings(layout: Layout, inputs: InputSpace, config: Config) -> dict[str, np.ndarray]:
    """The embeddings: of tokens by id, after them the BOS and padding; and of positions."""
    tokens = np.zeros((config.d_vocab, config.d_model))
    for variable in layout.written:
        if isinstance(layout.graph.nodes[variable], TokensNode):
            tokens[: len(inputs.vocab)] = layout.encodings(variable)[:-1] @ layout.write(variable)
    if layout.one is not None:
        tokens[: len(inputs.vocab), layout.one] = 1
    if layout.bos is not None:
        tokens[len(inputs.vocab), layout.bos] = 1
    if layout.pad is not None:
        tokens[-1, layout.pad] = 1
    if config.positions == "none":
        return {"embed.W_E": tokens}
    return {"embed.W_E": tokens, "pos_embed.W_pos": _position_embedding(layout, inputs)}


def _position_embedding(layout: Layout, inputs: InputSpace) -> np.ndarray:
    """The embedding of positions, the BOS first (and without a position of its own)."""
    offset = int(layout.bos is not None)
    positions = np.zeros((inputs.max_len + offset, layout.d_model))
    for variable in layout.written:
        if isinstance(layout.graph.nodes[variable], IndicesNode):
            positions[offset:] = layout.encodings(variable)[:-1] @ layout.write(variable)
    return positions


def _unembedding(layout: Layout) -> np.ndarray:
    """The unembedding, which reads the result: one logit per value, or the number and whether it is defined."""
    return layout.reading(layout.graph.output)


def _attention_weights(layer: int, heads: list[Head], config: Config) -> dict[str, np.ndarray]:
    """The heads of a layer side by side, padded with zeros to the model's widths."""
    arrays = {
        letter: np.zeros((config.n_heads, config.d_model, config.d_head), WEIGHTS)
        for letter in ("W_Q", "W_K", "W_V")
    }
    arrays["W_O"] = np.zeros((config.n_heads, config.d_head, config.d_model), WEIGHTS)
    for index, head in enumerate(heads):
        for letter in ("W_Q", "W_K", "W_V"):
            block = getattr(head, letter)
            arrays[letter][index, :, : block.shape[1]] = block
        arrays["W_O"][index, : head.W_O.shape[0]] = head.W_O
    return {param_name(name, layer): array for name, array in arrays.items()}


def _mlp_weights(layer: int, blocks: list[Neurons], config: Config) -> dict[str, np.ndarray]:
    """The neurons of a layer side by side, padded with silent ones to the model's width."""
    W_in = np.zeros((config.d_model, config.d_mlp), WEIGHTS)
    W_out = np.zeros((config.d_mlp, config.d_model), WEIGHTS)
    end = 0
    for block in blocks:
        start, end = end, end + block.W_in.shape[1]
        W_in[:, start:end], W_out[start:end] = block.W_in, block.W_out
    return {param_name("W_in", layer): W_in, param_name("W_out", layer): W_out}


def _mask(layout: Layout, inputs: InputSpace) -> np.ndarray:
    """The mask of the program; a BOS, where there is one, is first, seen by all, and sees itself."""
    if layout.bos is None:
        return inputs.visible
    mask = np.pad(inputs.visible, ((1, 0), (1, 0)), constant_values=True)
    mask[0, 1:] = False
    return mask


def _head_places(heads: list[list[tuple[int, Head]]]) -> dict[tuple[int, int], int]:
    return {
        (layer, index): variable
        for layer, blocks in enumerate(heads)
        for index, (variable, _) in enumerate(blocks)
    }


def _neuron_places(neurons: list[dict[int, Neurons]]) -> dict[tuple[int, int, int], int]:
    places, end = {}, 0
    for layer, blocks in enumerate(neurons):
        end = 0
        for variable, block in blocks.items():
            start, end = end, end + block.W_in.shape[1]
            if end > start:  # what is always the same as nothing takes no neurons
                places[layer, start, end] = variable
    return places
