"""How a model takes padding: as a token like any other, behind a mask, or left out, so that positions skip it too.

A language model's config names its padding. `generate` of transformers hides that token by a mask, and counts
positions from the first token behind it. A model that is asked without them reads other inputs than it learned.
"""

import warnings
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Int

from rasplens.compare.subject.vocabulary import Padding, Vocabulary
from rasplens.errors import RaspLensError
from rasplens.model.exports.bridge import relative_difference
from rasplens.tasks import Task
from rasplens.tasks.task import Ids

SAME = 1e-3
"""Largest difference, relative to their spread, between logits with padding left out and without padding:
masked scores are large numbers, which round."""

TELLING = 0.005
"""Smallest difference in accuracy that distinguishes two ways of padding."""


def padding_of(model: Any, task: Task, vocabulary: Vocabulary) -> Padding:
    """Return how a model takes a task's padding: as is said, or left out where its config names that token."""
    named = getattr(model.cfg, "pad_token_id", None)
    if task.padding is None:
        return "token"
    if vocabulary.padding is not None or named is None:
        return vocabulary.padding or "token"
    padding = np.full((1, task.n_ctx), task.vocab.index(task.padding))
    return "left out" if vocabulary.tokens(padding)[0, vocabulary.positions[0]] == named else "token"


def is_own(task: Task, ids: Ids) -> np.ndarray:
    """Return which tokens of a task's inputs are no padding: `[input, pos]`."""
    return np.ones_like(ids, dtype=bool) if task.padding is None else ids != task.vocab.index(task.padding)


def arguments(padding: Padding, seen: Int[torch.Tensor, "input ctx"]) -> dict[str, torch.Tensor]:
    """Return what a model is called with beside tokens; a bridge that sees a mask counts positions by it.

    Args:
        padding: How it takes padding.
        seen: 1 for its positions that are no padding.
    """
    if padding == "token":
        return {}
    positions = {"position_ids": torch.arange(seen.shape[1]).expand_as(seen)} if padding == "masked" else {}
    return {"attention_mask": seen, **positions}


def check_left_out(model: Callable[..., torch.Tensor], tokens: torch.Tensor, seen: torch.Tensor) -> None:
    """Raises unless a model gives for an input what it gives for that input without its padding.

    Args:
        model: From tokens, and a mask, to logits.
        tokens: One input, `[1, ctx]`.
        seen: Which of its tokens are no padding.

    Raises:
        RaspLensError: If it does not.
    """
    own = seen[0].bool()
    padded = model(tokens, **arguments("left out", seen))[:, own].detach().cpu().numpy()
    if not relative_difference(padded, model(tokens[:, own]).detach().cpu().numpy()) <= SAME:
        raise RaspLensError(
            "The model cannot take padding before tokens: its logits differ from those without padding. "
            'Pad on the right, or set token_vocabulary(..., padding="token").'
        )


def warn_of_other_ways(taken: Padding, right: Callable[[Padding], float]) -> None:
    """Warns where a model gives more answers right if it takes padding in another way."""
    shares = {}
    for way in get_args(Padding):
        try:
            shares[way] = right(way)
        except TypeError:  # it takes no positions
            continue
    best = max(shares, key=lambda way: shares[way])
    if shares[best] > shares[taken] + TELLING:
        warnings.warn(
            f"The model gets {shares[taken]:.3f} of its answers right with padding {taken}, as its config says, "
            f"and {shares[best]:.3f} with padding {best}. Set the padding that it was trained with: "
            f'token_vocabulary(..., padding="{best}").',
            stacklevel=4,
        )
