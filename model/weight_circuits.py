"""Circuits read off the weights: what a head copies, what it attends to, and the path around it.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from rasplens.errors import RaspLensError
from rasplens.model.forward import normalized, sinusoids
from rasplens.model.hook_points import param_name
from rasplens.model.transformer import Transformer


def ov_matrix(model: Transformer, layer: int, head: int) -> Float[np.ndarray, "d_model d_model"]:
    """`W_V W_O` of a head: how a residual vector that is attended to is written."""
    return _head_weight(model, layer, head, "V") @ _head_weight(model, layer, head, "O")


def qk_matrix(model: Transformer, layer: int, head: int) -> Float[np.ndarray, "d_model d_model"]:
    """`W_Q W_Kᵀ / attn_scale` of a head: the score of a query residual (row) with a key residual (column)."""
    query, key = _head_weight(model, layer, head, "Q"), _head_weight(model, layer, head, "K")
    return query @ key.T / model.config.attn_scale


def full_ov_circuit(model: Transformer, layer: int, head: int) -> Float[np.ndarray, "d_vocab d_vocab_out"]:
    """`W_E W_V W_O W_U`: the logits that attending to a token writes.

    Raises:
        RaspLensError: If the model normalises its residual stream: its circuits are then no products of weights.
    """
    _require_linear(model)
    return model.W_E @ ov_matrix(model, layer, head) @ model.W_U


def direct_path(model: Transformer) -> Float[np.ndarray, "d_vocab d_vocab_out"]:
    """`W_E W_U`: the logits that a token writes without any head.

    Raises:
        RaspLensError: If the model normalises its residual stream.
    """
    _require_linear(model)
    return model.W_E @ model.W_U


def logit_lens(
    model: Transformer, residual: Float[np.ndarray, "*batch d_model"]
) -> Float[np.ndarray, "*batch d_vocab_out"]:
    """The logits if the residual stream were unembedded here (nostalgebraist 2020), by the final layer norm."""
    return normalized(model.weights, model.config, "ln_final", residual) @ model.W_U + model.weights.get(
        "unembed.b_U", 0
    )


@dataclass(frozen=True, eq=False)
class ScoreTerms:
    """The attention score of an embedding-level head as a sum of four: `[query side, key side]`.

    With token ids t and positions i of a query and a key,
    `score = token_token[t_q, t_k] + token_position[t_q, i_k] + position_token[i_q, t_k]
    + position_position[i_q, i_k]`.
    """

    token_token: Float[np.ndarray, "d_vocab d_vocab"]
    token_position: Float[np.ndarray, "d_vocab n_ctx"]
    position_token: Float[np.ndarray, "n_ctx d_vocab"]
    position_position: Float[np.ndarray, "n_ctx n_ctx"]


def score_terms(model: Transformer, head: int, layer: int = 0) -> ScoreTerms:
    """The four terms of a head's attention score, as far as it reads the embeddings.

    Exact in layer 0; in later layers it is the part of the score that comes straight from the
    embeddings. Query and key biases count as part of the position's contribution. Unlike the usual
    `W_E W_QK W_Eᵀ`, the terms are divided by `attn_scale`, so that they add up to the score.

    Raises:
        RaspLensError: If the model smears its keys (a key is then no function of one token), turns them by rotary
            positions, or normalises its residual stream.
    """
    _require_linear(model)
    if not model.config.has_score_terms:
        raise RaspLensError(
            "The score has no four-term form: a smeared key mixes two positions, and a rotary key is turned "
            "by its position."
        )
    query_token, query_position = _embedding_projections(model, layer, head, "Q")
    key_token, key_position = _embedding_projections(model, layer, head, "K")
    scale = model.config.attn_scale
    return ScoreTerms(
        query_token @ key_token.T / scale,
        query_token @ key_position.T / scale,
        query_position @ key_token.T / scale,
        query_position @ key_position.T / scale,
    )


def copying_score(circuit: Float[np.ndarray, "row column"]) -> float:
    """`Σλ / Σ|λ|` over the eigenvalues of a token-to-logit circuit, in [-1, 1].

    1 says that every token (or mixture of tokens) raises itself, -1 that it lowers itself. Where there
    are more tokens than logits, only the tokens that have a logit count.

    Source: Elhage et al. 2021, section "Summarizing OV/QK matrices". The eigenvalues of a real matrix
    come in conjugate pairs, so the sum is real.

    Raises:
        RaspLensError: If there are more logits than tokens, or every eigenvalue is zero.
    """
    n_tokens, n_logits = circuit.shape
    if n_logits > n_tokens:
        raise RaspLensError(f"A circuit of {n_tokens} tokens cannot have {n_logits} logits.")
    eigenvalues = np.linalg.eigvals(circuit[:n_logits].astype(np.float64))
    total = np.abs(eigenvalues).sum()
    if total == 0:
        raise RaspLensError("Every eigenvalue is zero: the circuit neither copies nor suppresses.")
    return float(eigenvalues.real.sum() / total)


def _require_linear(model: Transformer) -> None:
    if model.config.normalization != "none":
        raise RaspLensError(
            "The model normalises its residual stream, so no product of its weights says what a path writes. "
            "Look at its activations instead."
        )


def _head_weight(model: Transformer, layer: int, head: int, letter: str) -> Float[np.ndarray, "d_in d_out"]:
    config = model.config
    if not (0 <= layer < config.n_layers and 0 <= head < config.n_heads):
        raise RaspLensError(
            f"There is no head L{layer}H{head}: the model has {config.n_layers} layers of "
            f"{config.n_heads} heads, counted from 0."
        )
    return model.weights[param_name(f"W_{letter}", layer)][head]


def _embedding_projections(
    model: Transformer, layer: int, head: int, letter: str
) -> tuple[Float[np.ndarray, "d_vocab d_head"], Float[np.ndarray, "n_ctx d_head"]]:
    """Return the terms of the token embedding and of the position in a head's queries or keys."""
    config = model.config
    weight = _head_weight(model, layer, head, letter)
    if config.positions in ("learned", "shortformer"):
        position = model.weights["pos_embed.W_pos"] @ weight
    elif config.positions == "none":
        position = np.zeros((config.n_ctx, config.d_head), dtype=model.dtype)
    else:
        waves = sinusoids(config.n_ctx, config.n_heads * config.d_head)
        position = waves.reshape(config.n_ctx, config.n_heads, config.d_head)[:, head].astype(model.dtype)
    bias = model.weights.get(param_name(f"b_{letter}", layer))
    return model.W_E @ weight, position if bias is None else position + bias[head]
