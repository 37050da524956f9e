"""Interchange interventions on a studied model: subspaces of an activation as they are on other inputs."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model.interventions import Project, Subspace


def taken(
    studied: StudiedModel,
    source: Int[np.ndarray, " pair"],
    intervened: Bool[np.ndarray, "pair pos"],
    point: str,
    subspaces: Mapping[int, Subspace],
) -> Project:
    """Return the intervention that takes subspaces of an activation from other inputs.

    Args:
        studied: The model.
        source: The inputs, by their place among the model's.
        intervened: At which positions of each pair.
        point: Of the activation.
        subspaces: By position.
    """
    asked = [position for position in subspaces if intervened[:, position].any()]
    value = studied.activation(point, source)[:, asked]
    there = {studied.at(position): subspaces[position] for position in asked}
    return Project(point, there, value, intervened[:, asked])
