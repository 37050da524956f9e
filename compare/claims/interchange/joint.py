"""Two variables interchanged at once, each from an input of its own.

Alone, a variable can be interchanged where only what it is computed from is at hand: with all of that taken from
the source, so is the variable. Together with what it is computed from, taken from elsewhere, it tells: in the
program the variable now says what it was set to, whatever it would have been computed from. So every variable is
interchanged at the last place in the forward pass where it can be at all.

There the directions of the one may hold some of the other, though. Of two variables of which neither is computed
from the other, the program's answers need both as they were set, wherever that is done. So other places where each
can be interchanged alone are tried as well, on pairs to choose on. Where one is computed from the other that would
be no test: set later than the other and wide enough, it would overwrite it.

Where it does so at its last place, the other may be in the model for all that: then what that place holds of it is
overwritten as well. So it is asked again in another way, see `posed_to_tell`, if it is known which of the two is
computed from the other.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
from jaxtyping import Bool

from rasplens.compare.claims.interchange.accuracy import FOUND, Interchange
from rasplens.compare.claims.interchange.joint_pairs import JointPairs, moves, posed_to_tell, posed_together
from rasplens.compare.claims.interchange.pairs import DrawnPairs, InterchangePairs
from rasplens.compare.claims.interchange.patching import Site
from rasplens.compare.claims.interchange.reference_sites import ReferenceSites
from rasplens.compare.claims.interchange.sites import GOOD_ENOUGH
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.study import Study
from rasplens.compare.subject.interchange import taken
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compile.rasp.program_graph import program_graph
from rasplens.model import random_streams
from rasplens.model.hook_points import when
from rasplens.model.interventions import torch_hooks


@dataclass(frozen=True, eq=False)
class JointInterchange:
    """The result of interchanging two variables at once.

    Attributes:
        pairs: The inputs.
        points: Where each was interchanged, chosen on other pairs.
        right: Which answers are as expected: `[pair, answer]`.
        ceiling: Which are in the compiled model itself, at sites that the same search finds there; None where it
            was not asked, because the model does well enough.
        compiled: Finds what `ceiling` is.
    """

    pairs: JointPairs
    points: tuple[str, str]
    right: Bool[np.ndarray, "pair answer"]
    ceiling: Bool[np.ndarray, "pair answer"] | None
    compiled: Callable[[], Bool[np.ndarray, "pair answer"]]

    @property
    def variables(self) -> tuple[str, str]:
        """Their names."""
        first, second = self.pairs.settings
        return first.variable, second.variable


def joint_interchanges(
    study: Study,
    drawn: Sequence[DrawnPairs],
    interchanged: Sequence[Interchange],
    reference: ReferenceSites,
    seed: int,
) -> Iterator[JointInterchange]:
    """Every two variables that can be interchanged alone, interchanged together.

    Args:
        study: The models on the same inputs.
        drawn: The pairs for each variable, see `draw_pairs`.
        interchanged: The variables, each interchanged alone.
        reference: Finds the sites in the compiled model, where they are asked for.
        seed: Of the inputs that the first variable is taken from.
    """
    fitting = study.fitting
    chosen = {pairs.variable: pairs for pairs, _ in drawn}
    rng, rng_sites, rng_told = (
        random_streams.rng(seed, f"joint interchange{of}") for of in ("", " sites", " told")
    )
    found = [one for one in interchanged if one.accuracy.score >= FOUND]
    for one, other in itertools.combinations(found, 2):
        follows = _may_follow(fitting, *(chosen[each.variable] for each in (one, other)))
        leads = _may_follow(fitting, *(chosen[each.variable] for each in (other, one)))
        both = (other, one) if leads and not follows else (one, other)
        first, second = both
        pairs = chosen[first.variable], chosen[second.variable]
        to_choose = None if follows or leads else posed_together(fitting, *pairs, rng_sites)
        posed = posed_together(study.scored, first.pairs, second.pairs, rng)
        result = _interchanged(study, both, pairs, posed, to_choose, reference)
        if follows != leads and _may_be_overwritten(result):
            told = posed_to_tell(study.scored, first.pairs, second.pairs, rng_told)
            if told is None:
                result = replace(result, pairs=posed.without_questions())
            else:
                result = _interchanged(study, both, pairs, told, None, reference)
        yield result


def _interchanged(
    study: Study,
    both: tuple[Interchange, Interchange],
    chosen: tuple[InterchangePairs, InterchangePairs],
    posed: JointPairs,
    to_choose: JointPairs | None,
    reference: ReferenceSites,
) -> JointInterchange:
    """Two variables together, in the learned model, and where that errs in the compiled one."""
    fitting = study.fitting
    sites = _sites(fitting.learned, to_choose, *(one.good for one in both))
    right = _right(study.learned, posed, *sites)

    def compiled() -> Bool[np.ndarray, "pair answer"]:
        good = (reference.sites(one).good for one in chosen)
        return _right(study.scored.reference, posed, *_sites(fitting.reference, to_choose, *good))

    ceiling = compiled() if min(_shares(right, posed)) < GOOD_ENOUGH else None
    return JointInterchange(posed, (sites[0].point, sites[1].point), right, ceiling, compiled)


def _may_follow(pairing: Pairing, first: InterchangePairs, second: InterchangePairs) -> bool:
    """Whether the second variable is computed from the first, by the program or in the compiled model.

    The compiler may have merged what the program computes twice, under either name. So both are asked. A variable
    that the program has no expression of may be computed from anything.
    """
    graph, variables = program_graph(pairing.compiled.program), pairing.compiled.variables
    s_ops = (variables[one.variable].kind_of or one.variable for one in (first, second))
    ours, other = ({node for node, label in graph.nodes(data="label") if label == s_op} for s_op in s_ops)
    behind = set[int]().union(*(nx.descendants(graph, node) for node in ours))
    return not ours or not other or bool(behind & other) or moves(pairing, first, second.variable)


def _may_be_overwritten(one: JointInterchange) -> bool:
    """Whether the second variable alone is lost, and the first, which it is computed from, was set later."""
    first, second = one.points
    by_first, by_second = _shares(one.right, one.pairs)
    return by_first >= GOOD_ENOUGH > by_second and when(first) > when(second)


def _sites(
    studied: StudiedModel, posed: JointPairs | None, first: Sequence[Site], second: Sequence[Site]
) -> tuple[Site, Site]:
    """The last place of each, where there is no choice.

    With pairs to choose on, the first two that do well enough on them, from the last on; the best, where none do.
    """
    best, highest = (first[0], second[0]), -1.0
    if posed is None:
        return best
    for sites in itertools.product(first, second):
        score = min(_shares(_right(studied, posed, *sites), posed))
        if score > highest:
            best, highest = sites, score
        if score >= GOOD_ENOUGH:
            break
    return best


def _right(studied: StudiedModel, posed: JointPairs, first: Site, second: Site) -> np.ndarray:
    both = sorted(zip(posed.settings, (first, second), strict=True), key=lambda one: when(one[1].point))
    both_taken = [
        taken(studied, setting.source, setting.intervened, site.point, site.subspaces) for setting, site in both
    ]
    answers = studied.codes(studied.logits(torch_hooks(both_taken), posed.base), posed.base)
    return np.asarray(answers == posed.expected)


def _shares(right: np.ndarray, posed: JointPairs) -> list[float]:
    return [float(right[which].mean()) if which.any() else 1.0 for which in (posed.by_first, posed.by_second)]
