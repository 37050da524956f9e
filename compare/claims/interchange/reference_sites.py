"""Where the search for a variable leads in the compiled model, in which it is known to be.

What the search does not find there says nothing of another model.
"""

from dataclasses import dataclass
from functools import cached_property

from rasplens.compare.claims.interchange.pairs import InterchangePairs
from rasplens.compare.claims.interchange.patching import scored
from rasplens.compare.claims.interchange.sites import GOOD_ENOUGH, Sites, components, find_sites
from rasplens.compare.evidence.subspaces.representations import Place, Representation, representations
from rasplens.compare.study import Study


@dataclass(frozen=True, eq=False)
class ReferenceSites:
    """The sites that the search finds in the compiled model; each variable is searched for once.

    Attributes:
        study: The models on the same inputs.
        seed: Of the search.
    """

    study: Study
    seed: int

    def ceiling(self, chosen: InterchangePairs) -> float:
        """The score that the search reaches; that of the first component which is good enough, where one is."""
        reference, few = self.study.fitting.reference, self._few(chosen)
        sites = (scored(reference, few, *part) for part in components(reference, chosen.positions))
        enough = next((site.score for site in sites if site.score >= GOOD_ENOUGH), None)
        return self.sites(chosen).best.score if enough is None else enough

    def sites(self, chosen: InterchangePairs) -> Sites:
        """Where the search finds the variable, from the pairs to choose on."""
        if chosen.variable not in self._found:
            reference, steps = self.study.fitting.reference, self.study.config.das_steps
            found = find_sites(reference, self._few(chosen), self._held, self.seed, steps)
            self._found[chosen.variable] = found
        return self._found[chosen.variable]

    def _few(self, chosen: InterchangePairs) -> InterchangePairs:
        return chosen.of(slice(self.study.config.control_pairs))

    @cached_property
    def _held(self) -> dict[Place, Representation]:
        return representations(self.study, "reference")

    @cached_property
    def _found(self) -> dict[str, Sites]:
        return {}
