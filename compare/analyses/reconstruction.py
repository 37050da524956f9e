"""Logits as a sum of what every input position contributes, along the attention that the model has."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.errors import RaspLensError
from rasplens.model import Transformer
from rasplens.model.hook_points import act_name, param_name
from rasplens.model.weight_circuits import ov_matrix


@dataclass(frozen=True, eq=False)
class LogitTerms:
    """The terms of the logits at the answer positions, and how well they add up.

    Attributes:
        sources: The name of each term: a position of the model (its embeddings, by every path of heads), an MLP
            (`"mlp 0"`: what it writes, by every path of the heads behind it) or `"bias"`.
        terms: `[input, answer, source, logit]`.
        logits: What the model gives: `[input, answer, logit]`.
        difference: The mean over answers of the L2 distance between logits and the sum of the terms.
    """

    sources: tuple[str, ...]
    terms: Float[np.ndarray, "input answer source logit"]
    logits: Float[np.ndarray, "input answer logit"]
    difference: float


def logit_terms(studied: StudiedModel) -> LogitTerms:
    """Each position's share of the logits, with attention patterns and MLP outputs as they are.

    With patterns held fixed, an attention-only transformer is linear in its embeddings; the terms are its
    paths (Elhage et al. 2021, "path expansion"), added up by the position that they start from.

    Raises:
        RaspLensError: If the model normalises its residual stream: it is then not linear even so.
    """
    model = studied.model.to_transformer()
    if model.config.normalization != "none":
        raise RaspLensError(
            f"logit_terms needs a model without layer norm; got normalization={model.config.normalization!r}, "
            "with which logits are not a sum over positions."
        )
    tokens = studied.tokens.numpy()
    logits, cache = model.run_with_cache(tokens)
    n_pos = tokens.shape[1]
    streams = _embedding_streams(model, cache)
    sources = [f"position {position}" for position in range(n_pos)]
    bias = np.zeros_like(streams[0])
    for layer in range(model.config.n_layers):
        pattern = cache[act_name("pattern", layer)]
        streams = [stream + _moved(model, layer, pattern, stream) for stream in streams]
        bias = bias + _moved(model, layer, pattern, bias) + _written_biases(model, layer, pattern)
        if not model.config.attn_only:
            sources.append(f"mlp {layer}")
            streams.append(cache[act_name("mlp_out", layer)])
    answers = studied.answer_places
    terms = np.stack([stream[:, answers] @ model.W_U for stream in (*streams, bias)], axis=2)
    terms[:, :, -1] += model.weights.get("unembed.b_U", np.zeros(model.config.d_vocab_out, dtype=model.dtype))
    actual = logits[:, answers]
    difference = float(np.linalg.norm(terms.sum(axis=2) - actual, axis=-1).mean())
    return LogitTerms((*sources, "bias"), terms, actual, difference)


def _embedding_streams(model: Transformer, cache: dict[str, np.ndarray]) -> list[np.ndarray]:
    """For each position a residual stream that holds its embeddings there and nothing elsewhere."""
    embedded = cache["hook_embed"] + (cache["hook_pos_embed"] if model.config.positions == "learned" else 0)
    streams = []
    for position in range(embedded.shape[1]):
        stream = np.zeros_like(embedded)
        stream[:, position] = embedded[:, position]
        streams.append(stream)
    return streams


def _moved(model: Transformer, layer: int, pattern: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Return the sum of a layer's head outputs for a residual stream, with fixed attention patterns."""
    heads = range(model.config.n_heads)
    return sum(
        (pattern[:, head] @ stream @ ov_matrix(model, layer, head) for head in heads), np.zeros_like(stream)
    )


def _written_biases(model: Transformer, layer: int, pattern: np.ndarray) -> np.ndarray:
    """Return what the value and output biases of a layer add to the residual stream."""
    config, none = model.config, np.zeros(model.config.d_model, dtype=model.dtype)
    written = np.zeros((*pattern.shape[::2], config.d_model), dtype=model.dtype)
    if (biases := model.weights.get(param_name("b_V", layer))) is not None:
        for head in range(config.n_heads):
            value = biases[head] @ model.weights[param_name("W_O", layer)][head]
            written = written + pattern[:, head].sum(axis=-1)[..., None] * value
    return written + model.weights.get(param_name("b_O", layer), none)
