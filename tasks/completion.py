"""What a model writes when it goes on from a prompt, letter by letter."""

import numpy as np
from jaxtyping import Int

from rasplens.errors import RaspLensError
from rasplens.model import Transformer


def complete(
    model: Transformer, prompts: Int[np.ndarray, "batch prompt"], length: int
) -> Int[np.ndarray, "batch pos"]:
    """Prompts continued greedily to a length: each next token is the one with the highest logit.

    Raises:
        RaspLensError: If the length exceeds the model's context, or logits do not stand for tokens.
    """
    if length > model.config.n_ctx:
        raise RaspLensError(f"The model has {model.config.n_ctx} positions; {length} were asked for.")
    if model.config.d_vocab_out > model.config.d_vocab:
        raise RaspLensError("The model's logits do not stand for its tokens, so it cannot go on from a prompt.")
    written = np.asarray(prompts)
    while written.shape[1] < length:
        written = np.concatenate([written, model(written)[:, -1:].argmax(axis=-1)], axis=1)
    return written
