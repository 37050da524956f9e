"""Fourth axis: does a variable of the program, put into the learned model, do there what it does in the program?

For a pair of inputs (base, source), the interpreter runs the program on the base with one variable taken from the
source; that is what a model that implements the program answers when the same is done to it. In the learned
model the variable's subspace is what is taken from the source. Interchange-intervention accuracy (Geiger et al.
2021, "Causal Abstractions of Neural Networks") counts agreement over pairs whose right answer changes, at the
answers that change; answers that must not change are counted beside it.

Maps are linear: with powerful ones anything can be found in any network (Sutter et al. 2025). Where to look, and
in which subspace, is chosen on some pairs and scored on others. The controls are random subspaces of the same
rank, and the same search in an untrained model. Whether an interchange needs a path that the variable itself
never takes is seen from the parts of what it changes (see `active_directions`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rasplens.compare.evidence.interchange.active_directions import read_directions, split
from rasplens.compare.evidence.interchange.das import principal_axes
from rasplens.compare.evidence.interchange.pairs import InterchangePairs
from rasplens.compare.evidence.interchange.patching import (
    Agreement,
    Subspaces,
    accuracy_drop_without,
    agreement,
)
from rasplens.compare.evidence.interchange.sites import SiteMethod, best_site, mapped_subspaces
from rasplens.compare.evidence.subspaces.representations import Place, Representation
from rasplens.compare.models.pairing import Pairing
from rasplens.model import random_streams


@dataclass(frozen=True, eq=False)
class Interchange:
    """The result of interchanging one variable in a learned model.

    Attributes:
        variable: Its name.
        point: The hook point that was chosen.
        method: "linear map" (the subspace of the linear map) or "DAS" (learned, see `das`).
        rank: The subspace's dimension, the mean over positions.
        accuracy: Interchange-intervention accuracy on the pairs to score on, per pair.
        active: The score of what it changes along directions which are read and move with the variable.
        dormant: That of the rest of what is read: an interchange that needs it is an illusion.
        random: The score of random subspaces of the same rank there.
        untrained: The score of the same search in an untrained model.
        full_stream: The score of full-stream patching there: it changes what must stay.
        ablated: The accuracy drop when the subspace is held at its mean over inputs.
        ablated_random: The same for random subspaces.
    """

    variable: str
    point: str
    method: SiteMethod
    rank: float
    accuracy: Agreement
    active: float
    dormant: float
    random: float
    untrained: float
    full_stream: float
    ablated: float
    ablated_random: float

    @property
    def control(self) -> float:
        """The higher of the scores of random subspaces and of an untrained model."""
        return max(self.random, self.untrained)


COLUMNS = (
    "variable", "point", "method", "rank", "pairs", "iia", "specificity", "score", "random", "untrained",
    "full_stream", "active", "dormant", "ablated", "ablated_random",
)  # fmt: skip


def interchanges(
    pairing: Pairing,
    drawn: Iterable[tuple[InterchangePairs, InterchangePairs]],
    learned: Mapping[Place, Representation],
    untrained: Mapping[Place, Representation],
    seed: int,
) -> list[Interchange]:
    """The interchange of every variable that can be tested.

    Args:
        pairing: The models on the same inputs.
        drawn: For each variable, the pairs to choose a site on and those to score on; see `draw_pairs`.
        learned: How the learned model represents the variables.
        untrained: How the control does.
        seed: Of random subspaces.
    """
    return [_interchange(pairing, chosen, scored, learned, untrained, seed) for chosen, scored in drawn]


def _interchange(
    pairing: Pairing,
    chosen: InterchangePairs,
    scored: InterchangePairs,
    learned: Mapping[Place, Representation],
    untrained: Mapping[Place, Representation],
    seed: int,
) -> Interchange:
    assert pairing.fitting is not None
    studied, control, steps = pairing.learned, pairing.untrained, pairing.config.das_steps
    point, method, subspaces = best_site(pairing.fitting.learned, chosen, learned, seed, steps)
    rng = random_streams.rng(seed, "interchange controls")
    stream = pairing.fitting.learned.residual(point)
    axes = {position: principal_axes(stream[:, position]) for position in subspaces}
    others = [_random_like(subspaces, axes, rng) for _ in range(pairing.config.random_subspaces)]
    ablated = accuracy_drop_without(studied, point, subspaces)
    moved = mapped_subspaces(learned, scored.variable, point)
    read = read_directions(pairing.fitting.learned, point, list(subspaces), seed)
    active, dormant = (
        agreement(studied, scored, point, subspaces, part).score for part in split(subspaces, read, moved)
    )
    there, _, theirs = best_site(
        pairing.fitting.untrained, chosen, untrained, seed, steps if method == "DAS" else 0
    )
    ranks = [basis.shape[1] for basis in subspaces.values()]
    return Interchange(
        variable=scored.variable,
        point=point,
        method=method,
        rank=float(np.mean(ranks)) if ranks else 0.0,
        accuracy=agreement(studied, scored, point, subspaces),
        active=active,
        dormant=dormant,
        random=float(np.mean([agreement(studied, scored, point, other).score for other in others])),
        untrained=agreement(control, scored, there, theirs).score,
        full_stream=agreement(studied, scored, point, None).score,
        ablated=ablated,
        ablated_random=float(np.mean([accuracy_drop_without(studied, point, other) for other in others])),
    )


def _random_like(
    subspaces: Subspaces, axes: Mapping[int, np.ndarray], rng: np.random.Generator
) -> dict[int, np.ndarray]:
    """Random subspaces of the same ranks, among the directions that the stream varies along.

    Where it varies along no more than those, there is no other subspace, and nothing is taken.
    """
    sizes = {position: (axes[position].shape[1], basis.shape[1]) for position, basis in subspaces.items()}
    return {
        position: axes[position] @ np.linalg.qr(rng.normal(size=(width, rank)))[0]
        for position, (width, rank) in sizes.items()
        if rank < width
    }


def interchange_table(found: Iterable[Interchange]) -> pd.DataFrame:
    """One row per variable: columns `COLUMNS`; shares in [0, 1]."""
    rows = []
    for one in found:
        iia, specificity = one.accuracy.iia, one.accuracy.specificity
        site = one.variable, one.point, one.method, one.rank
        scores = len(iia), iia.mean(), specificity.mean(), one.accuracy.score
        controls = one.random, one.untrained, one.full_stream, one.active, one.dormant
        rows.append((*site, *scores, *controls, one.ablated, one.ablated_random))
    return pd.DataFrame(rows, columns=list(COLUMNS))
