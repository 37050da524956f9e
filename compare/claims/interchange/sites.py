"""Where a variable is interchanged: the site that does best on pairs to choose on, and no larger than it needs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rasplens.compare.claims.interchange.coordinates import Subspaces
from rasplens.compare.claims.interchange.das import distributed_alignment_search
from rasplens.compare.claims.interchange.pairs import InterchangePairs
from rasplens.compare.claims.interchange.patching import (
    NO_WORSE,
    Site,
    SiteMethod,
    alone,
    by_its_active_part,
    rescored,
    scored,
    smallest,
)
from rasplens.compare.claims.interchange.stream_axes import stream_axes
from rasplens.compare.evidence.parallel import in_parallel
from rasplens.compare.evidence.subspaces.representations import Place, Representation
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model.hook_points import act_name, when
from rasplens.model.interventions import Subspace, whole

GOOD_ENOUGH = 0.95
"""Where a whole component, or the subspaces of the linear map, score this high, DAS is not run."""

CLEARLY_BETTER = 0.05
"""By how much; on some hundred pairs, less may be chance."""

FEW_PAIRS = 30
"""All sites are scored on so many pairs; on all of them, those that do not do clearly worse than the best."""

CLEARLY_WORSE = 0.3
"""By how much: on few pairs less may be chance. A site that never works is clearly worse than any."""

MOST_RESCORED = 24
"""At most so many are scored on all of them, of the hundreds that a large model has."""

MOST_GOOD = 5
"""Of the sites that score no worse than the best, so many are kept."""


Candidate = tuple[str, SiteMethod, Subspaces]
"""A hook point, and subspaces there that were found by a method."""


@dataclass(frozen=True, eq=False)
class Sites:
    """Where a variable can be interchanged.

    Attributes:
        best: The site with the highest score.
        good: Those that score no worse, from the last in the forward pass to the first; of many `MOST_GOOD`, from
            all over it.
    """

    best: Site
    good: tuple[Site, ...]


def find_sites(
    studied: StudiedModel,
    chosen: InterchangePairs,
    found: Mapping[Place, Representation],
    seed: int,
    das_steps: int,
) -> Sites:
    """The sites with the highest score on the pairs to choose on, each by its active part as well.

    DAS runs only where neither components nor the subspaces of the map score `GOOD_ENOUGH`, and not with 0 steps.
    """
    whole_parts = list(components(studied, chosen.positions))
    candidates = [*_mapped(studied, found, chosen), *whole_parts]
    few = alone(studied, chosen.of(slice(FEW_PAIRS)))
    # Of a map and a component that score alike, the map: it takes less along.
    tried = [scored(*few, point, method, subspaces) for point, method, subspaces in candidates]
    sites, on = tried, few
    if len(chosen.base) > FEW_PAIRS and (promising := _promising(tried)):
        # From here on without the rest: what is scored on few pairs is held against nothing that is scored on all.
        on = alone(studied, chosen)
        sites = [rescored(*on, site) for site in promising]

    def by_active_part(site: Site) -> Site:
        if site.method == "component":  # takes every path
            return site
        moved = mapped_subspaces(studied, found, chosen.variable, site.point)
        return by_its_active_part(*on, site, stream_axes(studied, site.point), moved)

    sites = _best_by(by_active_part, sites)
    best = max(sites, key=lambda site: site.score)
    if das_steps and best.score < GOOD_ENOUGH and studied.vocabulary.columns is not None:
        # With nothing to start from, the middle is where a variable between input and output has to be.
        mapped = [site for site in sites if site.method == "linear map"]
        mapped = mapped or [site for site in tried if site.method == "linear map"]
        start = max(mapped, key=lambda site: site.score)
        start = start if start.score > 0 else mapped[len(mapped) // 2]
        search = distributed_alignment_search(studied, chosen, start.point, start.subspaces, seed, das_steps)
        searched = Site(start.point, "DAS", search.subspaces, search.score, search.fitted)
        sites.append(by_active_part(searched))
        # What was searched for has to be clearly better to be preferred to what was read off.
        best = sites[-1] if sites[-1].score > best.score + CLEARLY_BETTER else best
    good = (site for site in sites if site.score >= best.score - NO_WORSE)
    last_first = sorted(good, key=lambda site: when(site.point), reverse=True)
    if best.method == "linear map":
        best = smallest(best, lambda site: by_active_part(rescored(*on, site)))
    return Sites(best, _spread(last_first))


def _best_by(judge: Callable[[Site], Site], sites: Sequence[Site]) -> list[Site]:
    """The sites, of which all that could be the best, or no worse, are judged; others score less anyway."""
    found, highest = list(sites), -1.0
    for i in sorted(range(len(sites)), key=lambda i: -sites[i].score):
        if sites[i].score < highest - NO_WORSE:
            break
        found[i] = judge(sites[i])
        highest = max(highest, found[i].score)
    return found


def _promising(sites: Sequence[Site]) -> list[Site]:
    """The sites that do not do clearly worse than the best, at most `MOST_RESCORED`, in their order."""
    least = max(max(site.score for site in sites) - CLEARLY_WORSE, np.finfo(float).tiny)
    best_first = sorted(range(len(sites)), key=lambda i: -sites[i].score)[:MOST_RESCORED]
    return [sites[i] for i in sorted(best_first) if sites[i].score >= least]


def _spread(sites: Sequence[Site]) -> tuple[Site, ...]:
    """At most `MOST_GOOD` of them, the first and the last among these."""
    places = np.linspace(0, len(sites) - 1, min(len(sites), MOST_GOOD)).round().astype(int)
    return tuple(sites[place] for place in places.tolist())


def mapped_subspaces(
    studied: StudiedModel, found: Mapping[Place, Representation], variable: str, point: str
) -> dict[int, Subspace]:
    """A variable's subspaces at one hook point, by position, where the linear map gives it any."""
    held = {
        position: one
        for (name, at, position), one in found.items()
        if (name, at) == (variable, point) and one.basis.shape[1]
    }
    if not held:
        return {}
    axes = stream_axes(studied, point)

    def at_position(position: int) -> Subspace:
        own, one = axes[position], held[position]
        _, _, directions = np.linalg.svd(one.rows @ own.to, full_matrices=False)
        return own.subspace(directions[: one.basis.shape[1]].T)

    return dict(zip(held, in_parallel(at_position, held), strict=True))


def _mapped(
    studied: StudiedModel, found: Mapping[Place, Representation], chosen: InterchangePairs
) -> Iterator[Candidate]:
    """The subspaces of the map at every hook point of the stream."""
    for point in studied.residual_points:
        yield point, "linear map", mapped_subspaces(studied, found, chosen.variable, point)


def components(studied: StudiedModel, positions: Sequence[int]) -> Iterator[Candidate]:
    """Yield whole components at some positions: `z` of each head, and the output of each attention and MLP."""

    def everywhere(part: Subspace) -> Subspaces:
        return dict.fromkeys(positions, part)

    for point in studied.output_points:
        yield point, "component", everywhere(whole(studied.width(point)))
    for layer in range(studied.n_layers):
        for head in studied.heads_of(layer):
            yield act_name("z", layer), "component", everywhere(studied.heads_subspace([head]))
