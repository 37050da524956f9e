"""Interchange interventions on a studied model: subspaces of an activation as they are on other inputs."""

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model.interventions import Project, Subspace, whole


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


def of_heads(studied: StudiedModel, heads: Iterable[int]) -> Subspace:
    """Return what some heads of a layer have of an activation in which all of them stand side by side."""
    d_head = studied.model.cfg.d_head
    directions = [i for head in heads for i in range(head * d_head, (head + 1) * d_head)]
    return whole(studied.model.cfg.n_heads * d_head, directions)
