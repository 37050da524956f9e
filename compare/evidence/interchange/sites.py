"""Where a variable is interchanged: the hook point, method and subspaces that do best on pairs to choose on."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from rasplens.compare.evidence.interchange.das import distributed_alignment_search
from rasplens.compare.evidence.interchange.pairs import InterchangePairs
from rasplens.compare.evidence.interchange.patching import agreement
from rasplens.compare.evidence.subspaces.representations import Place, Representation
from rasplens.compare.models.studied_model import StudiedModel

GOOD_ENOUGH = 0.95
"""Where the subspaces of the linear map score this high, DAS is not run."""

SiteMethod = Literal["linear map", "DAS"]


def best_site(
    studied: StudiedModel,
    chosen: InterchangePairs,
    found: Mapping[Place, Representation],
    seed: int,
    das_steps: int,
) -> tuple[str, SiteMethod, dict[int, np.ndarray]]:
    """The hook point, the method and the subspaces with the highest score on the pairs to choose on.

    DAS runs only where the subspaces of the map score below `GOOD_ENOUGH`, and not with 0 steps.
    """
    points = studied.residual_points
    maps = [mapped_subspaces(found, chosen.variable, point) for point in points]
    scores = [agreement(studied, chosen, point, bases).score for point, bases in zip(points, maps, strict=True)]
    best = int(np.argmax(scores))
    mapped: tuple[str, SiteMethod, dict[int, np.ndarray]] = points[best], "linear map", maps[best]
    if not das_steps or scores[best] >= GOOD_ENOUGH or studied.vocabulary.columns is None:
        return mapped
    # With nothing to start from, the middle is where a variable between input and output has to be.
    start = best if scores[best] > 0 else len(points) // 2
    aligned = distributed_alignment_search(studied, chosen, points[start], maps[start], seed, das_steps)
    if agreement(studied, chosen, points[start], aligned).score <= scores[best]:
        return mapped
    return points[start], "DAS", aligned


def mapped_subspaces(found: Mapping[Place, Representation], variable: str, point: str) -> dict[int, np.ndarray]:
    """A variable's subspaces at one hook point, by position, where it has any."""
    bases = {place[2]: one.basis for place, one in found.items() if place[:2] == (variable, point)}
    return {position: basis for position, basis in bases.items() if basis.shape[1]}
