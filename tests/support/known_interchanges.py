"""Interchanges with known scores."""

import numpy as np

from rasplens.compare.claims.interchange.accuracy import Interchange
from rasplens.compare.claims.interchange.pairs import InterchangePairs, interchange_pairs
from rasplens.compare.claims.interchange.patching import Agreement, Site, SiteMethod
from rasplens.compare.study import Study
from rasplens.model.interventions import whole


def known_interchange(
    variable: str,
    iia: list[float],
    specificity: list[float],
    *,
    active: list[float] | None = None,
    method: SiteMethod = "linear map",
    random: float = 0.0,
    untrained: float = 0.0,
    ceiling: float = 1.0,
    chosen: float = 1.0,
) -> Interchange:
    """An interchange on pairs of two answers: one that has to change, and one that must not.

    Args:
        variable: The variable's name.
        iia: Of each pair, whether the first is as expected.
        specificity: Whether the second is.
        active: As `iia`, of the active part; by default the same.
        method: How the site was found.
        random: The score of random subspaces.
        untrained: That of an untrained model.
        ceiling: What the search reaches in the compiled model.
        chosen: The score on the pairs that the site was chosen on.
    """
    n = len(iia)
    changes = np.tile([True, False], (n, 1))
    none = np.zeros((n, 2), dtype=int)
    pairs = InterchangePairs(variable, none[:, 0], none[:, 1], changes, none, changes)

    def agreed(first: list[float]) -> Agreement:
        both = np.stack([first, specificity], axis=1).astype(float)
        return Agreement(both[:, 0], both[:, 1], both > 0.5, (both <= 0.5).astype(int))

    site = Site("blocks.0.hook_resid_post", method, {0: whole(3)}, chosen, chosen)
    return Interchange(
        pairs=pairs,
        site=site,
        good=(site,),
        rank=3.0,
        accuracy=agreed(iia),
        active=agreed(iia if active is None else active),
        dormant=0.0,
        random=random,
        untrained=untrained,
        full_stream=0.0,
        ceiling=ceiling,
        n_ceiling=n,
        ablated=0.0,
        ablated_random=0.0,
    )


def scored_pairs(study: Study, variable: str, seed: int = 0) -> InterchangePairs:
    """Pairs to score a variable's interchange on, where there are enough."""
    found = interchange_pairs(study.scored, variable, study.interchangeable_positions(variable), seed)
    assert found is not None
    return found
