"""Interchange interventions: a model's answers with subspaces of its residual stream taken from another input."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.evidence.interchange.pairs import InterchangePairs
from rasplens.compare.models.studied_model import StudiedModel

Subspaces = Mapping[int, Float[np.ndarray, "d_model rank"]]
"""By the task's position, an orthonormal basis."""


@dataclass(frozen=True)
class Agreement:
    """How a model's answers agree with the program's after an interchange, per pair.

    Attributes:
        iia: Share of the answers that change which are as expected: `[pair]`.
        specificity: Share of the others; 1 where there are none.
    """

    iia: Float[np.ndarray, " pair"]
    specificity: Float[np.ndarray, " pair"]

    @property
    def score(self) -> float:
        """The smaller of the two means: full-stream patching changes what must stay, none changes nothing."""
        return float(min(self.iia.mean(), self.specificity.mean()))


def agreement(
    studied: StudiedModel,
    pairs: InterchangePairs,
    point: str,
    subspaces: Subspaces | None,
    into: Subspaces | None = None,
) -> Agreement:
    """The agreement of a model's answers after one interchange, at one hook point.

    Args:
        studied: The model, on the pairing's inputs.
        pairs: The pairs.
        point: A hook point of the residual stream.
        subspaces: By position; None takes the whole stream at the variable's positions.
        into: What the coordinates in those are put into, by position, as a vector for each: `[d_model, rank]`; by
            default the same subspaces.
    """
    into = subspaces if into is None else into
    source = studied.residual(point)[pairs.source]

    def take(stream: torch.Tensor, hook: object) -> torch.Tensor:
        stream = stream.clone()
        for position in pairs.positions:
            if subspaces is not None and position not in subspaces:
                continue
            place, rows = studied.at(position), torch.as_tensor(pairs.intervened[:, position])
            difference = torch.as_tensor(source[:, position], dtype=stream.dtype) - stream[:, place]
            if subspaces is not None and into is not None:
                basis, vectors = (
                    torch.as_tensor(part[position], dtype=stream.dtype) for part in (subspaces, into)
                )
                difference = difference @ basis @ vectors.T
            stream[:, place] += difference * rows[:, None]
        return stream

    logits = studied.logits(studied.tokens[pairs.base], [(point, take)])
    return _agreement(studied.vocabulary.codes(logits), pairs)


def accuracy_drop_without(studied: StudiedModel, point: str, subspaces: Subspaces) -> float:
    """The accuracy drop of a model when subspaces are held at their means over its inputs."""
    means = {position: studied.residual(point)[:, position].mean(axis=0) for position in subspaces}

    def hold(stream: torch.Tensor, hook: object) -> torch.Tensor:
        stream = stream.clone()
        for position, matrix in subspaces.items():
            basis, place = torch.as_tensor(matrix, dtype=stream.dtype), studied.at(position)
            difference = torch.as_tensor(means[position], dtype=stream.dtype) - stream[:, place]
            stream[:, place] += difference @ basis @ basis.T
        return stream

    return float(studied.right().mean() - (studied.edited_answers([(point, hold)]) == studied.targets).mean())


def _agreement(answers: np.ndarray, pairs: InterchangePairs) -> Agreement:
    right, changes = answers == pairs.expected, pairs.changes
    specificity = np.where(
        changes.all(axis=1), 1.0, (right & ~changes).sum(axis=1) / np.maximum(1, (~changes).sum(axis=1))
    )
    return Agreement((right & changes).sum(axis=1) / changes.sum(axis=1), specificity)
