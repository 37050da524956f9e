"""Interchange interventions: a model's answers with subspaces of an activation taken from another input."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from rasplens.compare.claims.interchange.coordinates import Subspace, Subspaces, whole
from rasplens.compare.claims.interchange.pairs import InterchangePairs
from rasplens.compare.models.studied_model import FwdHook, StudiedModel


@dataclass(frozen=True)
class Agreement:
    """How a model's answers agree with the program's after an interchange, per pair.

    Attributes:
        iia: Share of the answers that change which are as expected: `[pair]`.
        specificity: Share of the others; 1 where there are none.
        right: Which answers are as expected: `[pair, answer]`.
    """

    iia: Float[np.ndarray, " pair"]
    specificity: Float[np.ndarray, " pair"]
    right: Bool[np.ndarray, "pair answer"]

    @property
    def score(self) -> float:
        """The smaller of the two means: full-stream patching changes what must stay, none changes nothing."""
        return float(min(self.iia.mean(), self.specificity.mean()))


def agreement(
    studied: StudiedModel, pairs: InterchangePairs, point: str, subspaces: Subspaces | None
) -> Agreement:
    """The agreement of a model's answers after one interchange, at one hook point.

    Args:
        studied: The model, on the pairing's inputs.
        pairs: The pairs.
        point: A hook point of the residual stream, of what heads gather, or of what a layer writes.
        subspaces: By position; None takes the whole activation at the variable's positions.
    """
    if subspaces is None:
        subspaces = dict.fromkeys(pairs.positions, whole(studied.width(point)))
    hook = taken(studied, pairs.source, pairs.intervened, point, subspaces)
    return _agreement(studied.codes(studied.logits([hook], pairs.base), pairs.base), pairs)


def alone(studied: StudiedModel, pairs: InterchangePairs) -> tuple[StudiedModel, InterchangePairs]:
    """A model on no inputs but those of some pairs, so that what passes any hook point there is computed once."""
    inputs, places = np.unique(np.concatenate([pairs.base, pairs.source]), return_inverse=True)
    base, source = np.split(places, 2)
    return studied.on(studied.ids[inputs]), replace(pairs, base=base, source=source)


def taken(
    studied: StudiedModel,
    source: Int[np.ndarray, " pair"],
    intervened: Bool[np.ndarray, "pair pos"],
    point: str,
    subspaces: Subspaces,
) -> FwdHook:
    """The hook that takes subspaces of an activation from other inputs.

    Args:
        studied: The model, on the pairing's inputs.
        source: The inputs, by their place in the pairing.
        intervened: At which positions of each pair.
        point: Of the activation.
        subspaces: By position.
    """
    theirs = studied.activation(point, source)

    def take(activation: torch.Tensor, hook: object) -> torch.Tensor:
        edited = activation.flatten(2).clone()
        for position in set(np.flatnonzero(intervened.any(axis=0)).tolist()) & set(subspaces):
            place, rows = studied.at(position), torch.as_tensor(intervened[:, position])
            difference = torch.as_tensor(theirs[:, position], dtype=edited.dtype) - edited[:, place]
            edited[:, place] += _projected(difference, subspaces[position]) * rows[:, None]
        return edited.reshape(activation.shape)

    return point, take


def accuracy_drop_without(studied: StudiedModel, point: str, subspaces: Subspaces) -> float:
    """The accuracy drop of a model when subspaces are held at their means over its inputs."""
    means = {position: studied.activation(point)[:, position].mean(axis=0) for position in subspaces}

    def hold(activation: torch.Tensor, hook: object) -> torch.Tensor:
        edited = activation.flatten(2).clone()
        for position, subspace in subspaces.items():
            place = studied.at(position)
            difference = torch.as_tensor(means[position], dtype=edited.dtype) - edited[:, place]
            edited[:, place] += _projected(difference, subspace)
        return edited.reshape(activation.shape)

    return float(studied.right().mean()) - studied.edited_accuracy([(point, hold)])


def _projected(difference: torch.Tensor, subspace: Subspace) -> torch.Tensor:
    read, write = (torch.as_tensor(part, dtype=difference.dtype) for part in (subspace.read, subspace.write))
    return difference @ read @ write.T


def _agreement(answers: np.ndarray, pairs: InterchangePairs) -> Agreement:
    right, changes, stays = answers == pairs.expected, pairs.changes, pairs.stays
    specificity = np.where(stays.any(axis=1), (right & stays).sum(axis=1) / np.maximum(1, stays.sum(axis=1)), 1.0)
    return Agreement((right & changes).sum(axis=1) / changes.sum(axis=1), specificity, right)
