"""The heuristics that the sorting head's attention score was read as, each as a number."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from rasplens.errors import RaspLensError
from rasplens.model import Transformer
from rasplens.model.weight_circuits import full_ov_circuit, score_terms
from rasplens.tasks import Task


@dataclass(frozen=True)
class SortingHeuristics:
    """The heuristics of a one-layer sorting model, read off the weights of its head 0.

    Attributes:
        copies: The share of numbers whose OV circuit raises themselves most.
        next_number: The share of numbers whose token-to-token score is highest for the next number.
        larger_number: The share of numbers whose token-to-token score is highest for a larger one.
        order: Spearman's rank correlation between output positions and the number that their
            position-to-token score favours (its mean under the softmax of the score); in [-1, 1].
        list_first: The share of output positions whose position-to-position score is higher for every position
            of the unsorted list than for any after the separator.
        spread_over_list: The standard deviation of the token-to-position score over the positions of the list,
            on average over numbers and relative to its spread over all positions; 0 is uniform.
        error: The largest difference between the sum of the four terms and the actual score.
    """

    copies: float
    next_number: float
    larger_number: float
    order: float
    list_first: float
    spread_over_list: float
    error: float


def sorting_heuristics(model: Transformer, task: Task) -> SortingHeuristics:
    """The published heuristics, measured on the four terms of the attention score.

    Source: Kissane, "Interpreting a toy model trained to sort lists", sections "OV circuit" and "QK circuits".

    Raises:
        RaspLensError: If the task is not sorting, or the model has no such terms.
    """
    if task.name != "sort":
        raise RaspLensError(f"sorting_heuristics needs the task 'sort'; got {task.name!r}.")
    n, length = len(task.outputs), len(task.loss_positions)
    unsorted, after = np.arange(1, length + 1), np.arange(length + 2, task.n_ctx)
    outputs = np.array(task.loss_positions)
    terms = score_terms(model, 0)
    favourite = terms.token_token[:n, :n].argmax(axis=1)
    by_position = terms.position_token[outputs][:, :n]
    weights = np.exp(by_position - by_position.max(axis=1, keepdims=True))
    favoured = (weights * np.arange(n)).sum(axis=1) / weights.sum(axis=1)
    positions = terms.position_position[outputs]
    later = np.where(after[None] <= outputs[:, None], positions[:, after], -np.inf)
    is_first = positions[:, unsorted].min(axis=1) > later.max(axis=1)
    by_token = terms.token_position[:n]
    return SortingHeuristics(
        copies=float((full_ov_circuit(model, 0, 0)[:n].argmax(axis=1) == np.arange(n)).mean()),
        next_number=float((favourite == np.arange(n) + 1).mean()),
        larger_number=float((favourite > np.arange(n)).mean()),
        order=float(spearmanr(outputs, favoured).statistic),
        list_first=float(is_first.mean()),
        spread_over_list=float((by_token[:, unsorted].std(axis=1) / by_token.std(axis=1)).mean()),
        error=_error(model, task),
    )


def _error(model: Transformer, task: Task) -> float:
    ids = task.held_out[:100]
    terms = score_terms(model, 0)
    here, query, key = np.arange(task.n_ctx), ids[:, :, None], ids[:, None, :]
    total = (
        terms.token_token[query, key]
        + terms.token_position[query, here]
        + terms.position_token[here[:, None], key]
        + terms.position_position
    )
    scores = model.run_with_cache(ids)[1]["blocks.0.attn.hook_attn_scores"][:, 0]
    return float(np.abs(total - scores)[np.isfinite(scores)].max())
