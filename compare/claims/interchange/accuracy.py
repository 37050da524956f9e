"""The interchange axis: what a variable of the program does in the learned model, beside the program.

For a pair of inputs (base, source), the compiled model answers on the base with one variable taken from the
source; that is what a model that implements the program answers when the same is done to it. In the learned model
what carries the variable is taken from the source. Interchange-intervention accuracy (Geiger et al. 2021, "Causal
Abstractions of Neural Networks") counts agreement over pairs whose right answer changes, at the answers that
change; answers that must not change are counted beside it.

Maps are linear: with powerful ones anything can be found in any network (Sutter et al. 2025). Where to look, and
in which subspace, is chosen on some pairs and scored on others. The controls are random subspaces of the same
rank, and the same search in an untrained model. Whether an interchange needs a path that the variable itself
never takes is seen from the parts of what it changes (see `active_directions`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rasplens.compare.claims.interchange.active_directions import split
from rasplens.compare.claims.interchange.coordinates import Whitened, n_axes
from rasplens.compare.claims.interchange.pairs import DrawnPairs, InterchangePairs
from rasplens.compare.claims.interchange.patching import (
    Agreement,
    Site,
    SiteMethod,
    accuracy_drop_without,
    agreement,
)
from rasplens.compare.claims.interchange.reference_sites import ReferenceSites
from rasplens.compare.claims.interchange.sites import GOOD_ENOUGH, find_sites, mapped_subspaces
from rasplens.compare.claims.interchange.stream_axes import stream_axes
from rasplens.compare.evidence.subspaces.representations import Place, Representation, representations
from rasplens.compare.study import Study
from rasplens.model import random_streams
from rasplens.model.interventions import Subspace

FOUND = 0.8
"""From this score on, the search has found the variable."""


@dataclass(frozen=True, eq=False)
class Interchange:
    """The result of interchanging one variable in a learned model.

    Attributes:
        pairs: The pairs that were scored on.
        site: Where it was interchanged, chosen on other pairs.
        good: Where it could be as well, from the last in the forward pass to the first.
        rank: Along how many directions the model varies there, the mean over positions.
        accuracy: Interchange-intervention accuracy on the pairs to score on, per pair.
        active: That of what it changes along directions which are read and move with the variable.
        dormant: The score of the rest of what is read: an interchange that needs it is an illusion. NaN where a
            whole component is interchanged: that takes every path.
        random: The score of random subspaces of the same rank there; NaN where there are none.
        untrained: The score of the same search in an untrained model.
        full_stream: The score of full-stream patching there: it changes what must stay.
        ceiling: What the same search reaches in the compiled model itself; 1 where it found the variable here.
        n_ceiling: On how many pairs.
        ablated: The accuracy drop when the subspace is held at its mean over inputs.
        ablated_random: The same for random subspaces.
    """

    pairs: InterchangePairs
    site: Site
    good: tuple[Site, ...]
    rank: float
    accuracy: Agreement
    active: Agreement
    dormant: float
    random: float
    untrained: float
    full_stream: float
    ceiling: float
    n_ceiling: int
    ablated: float
    ablated_random: float

    @property
    def variable(self) -> str:
        """The variable's name."""
        return self.pairs.variable

    @property
    def point(self) -> str:
        """The hook point that was chosen."""
        return self.site.point

    @property
    def method(self) -> SiteMethod:
        """How the subspaces there were found."""
        return self.site.method

    @property
    def control(self) -> float:
        """The higher of the scores of random subspaces and of an untrained model."""
        return float(np.fmax(self.random, self.untrained))


COLUMNS = (
    "variable", "point", "method", "rank", "pairs", "iia", "specificity", "score", "random", "untrained",
    "full_stream", "ceiling", "active", "dormant", "ablated", "ablated_random",
)  # fmt: skip


def interchanges(
    study: Study,
    drawn: Sequence[DrawnPairs],
    learned: Mapping[Place, Representation],
    reference: ReferenceSites,
    seed: int,
) -> list[Interchange]:
    """The interchange of every variable that can be tested.

    Args:
        study: The models on the same inputs.
        drawn: The pairs for each variable, see `draw_pairs`.
        learned: How the learned residual stream represents the variables.
        reference: Finds the sites in the compiled model, where they are asked for.
        seed: Of random subspaces.
    """
    untrained = representations(study, "untrained", [chosen.variable for chosen, _ in drawn]) if drawn else {}
    return [_interchange(study, pairs, learned, untrained, reference, seed) for pairs in drawn]


def _interchange(
    study: Study,
    pairs: DrawnPairs,
    learned: Mapping[Place, Representation],
    untrained: Mapping[Place, Representation],
    reference: ReferenceSites,
    seed: int,
) -> Interchange:
    chosen, scored = pairs
    studied, fitted, steps = study.learned, study.fitting.learned, study.config.das_steps
    sites = find_sites(fitted, chosen, learned, seed, steps)
    site = sites.best
    accuracy = agreement(studied, scored, site.point, site.subspaces)
    active, dormant, others = accuracy, np.nan, []
    if site.method != "component":
        axes = stream_axes(fitted, site.point)
        rng = random_streams.rng(seed, "interchange controls")
        others = [_random_like(site, axes, rng) for _ in range(study.config.random_subspaces)]
        moved = mapped_subspaces(fitted, learned, scored.variable, site.point)
        active, rest = (
            agreement(studied, scored, site.point, part) for part in split(site.subspaces, axes, moved)
        )
        dormant = rest.score
    # What a search finds in an untrained model says something only of what one has found.
    das_steps = steps if site.method == "DAS" and accuracy.score >= FOUND else 0
    few = slice(study.config.control_pairs)
    floor = find_sites(study.fitting.untrained, chosen.of(few), untrained, seed, das_steps).best
    return Interchange(
        pairs=scored,
        site=site,
        good=sites.good,
        rank=_rank(fitted.activation(site.point), site),
        accuracy=accuracy,
        active=active,
        dormant=dormant,
        random=_mean(agreement(studied, scored, site.point, other).score for other in others),
        untrained=agreement(study.scored.untrained, scored.of(few), floor.point, floor.subspaces).score,
        full_stream=agreement(studied, scored, site.point, None).score,
        ceiling=1.0 if accuracy.score >= GOOD_ENOUGH else reference.ceiling(chosen),
        n_ceiling=len(chosen.of(few).base),
        ablated=accuracy_drop_without(studied, site.point, site.subspaces),
        ablated_random=_mean(accuracy_drop_without(studied, site.point, other) for other in others),
    )


def _rank(activation: np.ndarray, site: Site) -> float:
    ranks = [n_axes(activation[:, position] @ one.read) for position, one in site.subspaces.items()]
    return float(np.mean(ranks)) if ranks else 0.0


def _random_like(site: Site, axes: Mapping[int, Whitened], rng: np.random.Generator) -> dict[int, Subspace]:
    """Random subspaces of the same ranks, among the directions that the activation varies along."""
    return {position: axes[position].random(one.rank, rng) for position, one in site.subspaces.items()}


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return float(np.mean(known)) if known else float("nan")


def interchange_table(found: Iterable[Interchange]) -> pd.DataFrame:
    """One row per variable: columns `COLUMNS`; shares in [0, 1]."""
    rows = []
    for one in found:
        iia, specificity = one.accuracy.iia, one.accuracy.specificity
        site = one.variable, one.point, one.method, one.rank
        scores = len(iia), iia.mean(), specificity.mean(), one.accuracy.score
        controls = one.random, one.untrained, one.full_stream, one.ceiling, one.active.score, one.dormant
        rows.append((*site, *scores, *controls, one.ablated, one.ablated_random))
    return pd.DataFrame(rows, columns=list(COLUMNS))
