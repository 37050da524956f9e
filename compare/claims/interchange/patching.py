"""Interchange interventions: a model's answers with subspaces of an activation taken from another input."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from rasplens.compare.claims.interchange.coordinates import Subspaces
from rasplens.compare.claims.interchange.pairs import InterchangePairs
from rasplens.compare.subject.interchange import taken
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model.interventions import Project, torch_hooks, whole


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
    hooks = torch_hooks([taken(studied, pairs.source, pairs.intervened, point, subspaces)])
    return _agreement(studied.codes(studied.logits(hooks, pairs.base), pairs.base), pairs)


def alone(studied: StudiedModel, pairs: InterchangePairs) -> tuple[StudiedModel, InterchangePairs]:
    """A model on no inputs but those of some pairs, so that what passes any hook point there is computed once."""
    inputs, places = np.unique(np.concatenate([pairs.base, pairs.source]), return_inverse=True)
    base, source = np.split(places, 2)
    return studied.on(studied.ids[inputs]), replace(pairs, base=base, source=source)


def accuracy_drop_without(studied: StudiedModel, point: str, subspaces: Subspaces) -> float:
    """Return the accuracy drop of a model when subspaces are held at their means over its inputs."""
    means = studied.activation(point)[:, list(subspaces)].mean(axis=0, keepdims=True)
    there = {studied.at(position): subspace for position, subspace in subspaces.items()}
    held = Project(point, there, means, np.ones((1, len(there)), dtype=bool))
    return float(studied.right().mean()) - studied.edited_accuracy(torch_hooks([held]))


def _agreement(answers: np.ndarray, pairs: InterchangePairs) -> Agreement:
    right, changes, stays = answers == pairs.expected, pairs.changes, pairs.stays
    specificity = np.where(stays.any(axis=1), (right & stays).sum(axis=1) / np.maximum(1, stays.sum(axis=1)), 1.0)
    return Agreement((right & changes).sum(axis=1) / changes.sum(axis=1), specificity, right)
