"""The cost of an ablation: accuracy, probability of the right answer, divergence of the answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import log_softmax

from rasplens.compare.config import CompareConfig
from rasplens.compare.evidence.derangements import derangement
from rasplens.compare.subject.studied_model import Head, StudiedModel
from rasplens.model import random_streams

Method = Literal["zero", "mean", "resample"]

METHODS: tuple[Method, ...] = get_args(Method)

STANDARD = CompareConfig()


@dataclass(frozen=True, eq=False)
class Effects:
    """Ablation effects.

    Attributes:
        table: One row per thing ablated. For every method: under its name, the drop in token accuracy;
            `method_probability`, the drop in the probability of the right answer; `method_kl`, the divergence of
            the answers from what they were, in nats. Both are NaN for a model that answers with numbers.
        drops: By method, the accuracy drop on each input: `[row, input]`.
    """

    table: pd.DataFrame
    drops: Mapping[Method, Float[np.ndarray, "row input"]]


@dataclass(frozen=True, eq=False)
class Edited:
    """A model's logits after each of some edits alone.

    Attributes:
        logits: Those at the answers that an edit can reach.
        answers: Which of the task's answers these are; the others stay as they were.
    """

    logits: Float[np.ndarray, "edit input answer logit"]
    answers: Sequence[int]


def ablated_heads(heads: Sequence[Head], config: CompareConfig) -> Sequence[Head]:
    """The heads that are ablated one by one: all, or none of a model that has too many."""
    return heads if len(heads) <= config.most_heads else ()


def measured_effects(
    studied: StudiedModel,
    keys: Sequence[Mapping[str, object]],
    without: Callable[[Method], Iterable[Edited]],
    columns: Sequence[str] = (),
) -> Effects:
    """The effects of ablations, from the logits after each of them.

    Args:
        studied: The model, on the inputs to use.
        keys: What identifies each thing ablated, in the order of `without`.
        without: From a method, the logits after each ablation.
        columns: The names of the keys, for a model in which there is nothing to ablate.
    """
    table = pd.DataFrame(keys, columns=list(columns) or None)
    drops: dict[Method, np.ndarray] = {}
    right, targets = studied.right().data, studied.targets
    asked, n_asked = studied.asked, studied.asked.sum() / studied.n_inputs
    clean = _log_probabilities(studied, studied.clean_logits)
    sure = _of_targets(clean, targets)
    for method in METHODS:
        rows, probability, kl = [np.empty((0, studied.n_inputs))], [np.empty(0)], [np.empty(0)]
        for edited in without(method):
            where = edited.answers
            right_now = studied.vocabulary.codes(edited.logits) == targets[:, where]
            lost = (right[:, where].astype(int) - right_now) * asked[:, where]
            rows.append(lost.sum(axis=-1) / n_asked)
            after = _log_probabilities(studied, edited.logits)
            gone = sure[:, where] - _of_targets(after, targets[:, where])
            diverged = _divergence(clean[:, where], after)
            for mean, of_answers in ((probability, gone), (kl, diverged)):
                mean.append((of_answers * asked[:, where]).sum(axis=-1).mean(axis=-1) / n_asked)
        drops[method] = np.concatenate(rows)
        table[method] = drops[method].mean(axis=1)
        table[f"{method}_probability"], table[f"{method}_kl"] = np.concatenate(probability), np.concatenate(kl)
    return Effects(table, drops)


def _log_probabilities(
    studied: StudiedModel, logits: Float[np.ndarray, "*batch logit"]
) -> Float[np.ndarray, "*batch answer"]:
    """Of the task's answers; -inf for those that the model cannot give, NaN if it can give none."""
    columns = studied.vocabulary.columns
    given = np.zeros(0, dtype=int) if columns is None else np.flatnonzero(columns >= 0)
    if columns is None or not given.size:
        return np.full((*logits.shape[:-1], len(studied.task.outputs)), np.nan)
    found = log_softmax(logits[..., columns[given]].astype(np.float64), axis=-1)
    if len(given) == len(columns):
        return found
    everything = np.full((*logits.shape[:-1], len(columns)), -np.inf)
    everything[..., given] = found
    return everything


def _divergence(
    clean: Float[np.ndarray, "input answer code"], edited: Float[np.ndarray, "edit input answer code"]
) -> Float[np.ndarray, "edit input answer"]:
    """In nats, by the logarithms: a probability that underflows is not infinitely far away."""
    difference = np.subtract(clean, edited, out=np.zeros_like(edited), where=~np.isneginf(edited))
    return (np.exp(clean) * difference).sum(axis=-1)


def _of_targets(
    log_probabilities: Float[np.ndarray, "*batch input answer code"], targets: Int[np.ndarray, "input answer"]
) -> Float[np.ndarray, "*batch input answer"]:
    """The probability of the right answers."""
    place = np.broadcast_to(targets, log_probabilities.shape[:-1])[..., None]
    return np.exp(np.take_along_axis(log_probabilities, place, axis=-1)[..., 0])


def replacement(activation: np.ndarray, method: Method, seed: int) -> np.ndarray:
    """Return the replacement of an activation `[input, ...]`: zeros, its mean, or its value on other inputs."""
    if method == "zero":
        return np.zeros_like(activation)
    if method == "mean":
        return np.broadcast_to(activation.mean(axis=0), activation.shape)
    return activation[derangement(len(activation), random_streams.rng(seed, "resample ablation"))]
