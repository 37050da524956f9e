"""Interchange interventions: a model's answers with subspaces of an activation taken from another input."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.claims.interchange.active_directions import split
from rasplens.compare.claims.interchange.coordinates import Subspaces, Whitened
from rasplens.compare.claims.interchange.pairs import InterchangePairs
from rasplens.compare.subject.interchange import taken
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model.interventions import Project, Subspace, torch_hooks, whole

NO_WORSE = 0.02
"""Of two sites of which one scores by no more than this better, the smaller one is taken."""

SiteMethod = Literal["component", "linear map", "DAS"]


@dataclass(frozen=True)
class Agreement:
    """How a model's answers agree with the program's after an interchange, per pair.

    Attributes:
        iia: Share of the answers that change which are as expected: `[pair]`.
        specificity: Share of the others; 1 where there are none.
        right: Which answers are as expected: `[pair, answer]`.
        given: The answers, as the task's codes.
    """

    iia: Float[np.ndarray, " pair"]
    specificity: Float[np.ndarray, " pair"]
    right: Bool[np.ndarray, "pair answer"]
    given: Int[np.ndarray, "pair answer"]

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
    return Agreement((right & changes).sum(axis=1) / changes.sum(axis=1), specificity, right, answers)


@dataclass(frozen=True, eq=False)
class Site:
    """Where, and along which directions, a variable is interchanged.

    Attributes:
        point: The hook point.
        method: How its subspaces were found: all of what a head gathers or a layer writes ("component"), by the
            linear map from the variables to the stream, or by distributed alignment search.
        subspaces: By position.
        score: On the pairs that it was chosen on; of its active part, if that is lower.
        fitted: On the pairs that its subspaces were fitted to, where that is a search; the score otherwise.
    """

    point: str
    method: SiteMethod
    subspaces: dict[int, Subspace]
    score: float
    fitted: float


def scored(
    studied: StudiedModel, chosen: InterchangePairs, point: str, method: SiteMethod, subspaces: Subspaces
) -> Site:
    """A candidate as a site, with its score on some pairs."""
    score = agreement(studied, chosen, point, subspaces).score
    return Site(point, method, dict(subspaces), score, score)


def rescored(studied: StudiedModel, chosen: InterchangePairs, site: Site) -> Site:
    """Return a site with its score on other pairs."""
    return scored(studied, chosen, site.point, site.method, site.subspaces)


def by_its_active_part(
    studied: StudiedModel, chosen: InterchangePairs, site: Site, axes: Mapping[int, Whitened], moved: Subspaces
) -> Site:
    """A site with the lower of two scores: its own, and that of its active part.

    Args:
        studied: The model.
        chosen: The pairs that it was scored on.
        site: The site.
        axes: The whitened coordinates of the stream there.
        moved: The directions along which the variable moves the stream there.
    """
    active, _ = split(site.subspaces, axes, moved)
    return replace(site, score=min(site.score, agreement(studied, chosen, site.point, active).score))


def smallest(best: Site, judge: Callable[[Site], Site]) -> Site:
    """The site with as few directions as score no worse.

    Args:
        best: The site with all of them.
        judge: Scores one with fewer.
    """
    most = max((one.rank for one in best.subspaces.values()), default=0)
    for rank in range(1, most):
        subspaces = {position: one.first(rank) for position, one in best.subspaces.items()}
        smaller = judge(replace(best, subspaces=subspaces))
        if smaller.score >= best.score - NO_WORSE:
            return smaller
    return best
