"""The claims on variables: taken from another input, each changes answers as in the program."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from rasplens.compare.claims.claim import Claim, SearchedAnew, Subject, judged_by_trials, untestable
from rasplens.compare.claims.interchange.accuracy import Interchange, interchange_table, interchanges
from rasplens.compare.claims.interchange.pairs import DrawnPairs, draw_pairs, interchange_pairs
from rasplens.compare.claims.interchange.patching import Site, agreement
from rasplens.compare.claims.interchange.reference_sites import ReferenceSites
from rasplens.compare.claims.interchange.sites import find_sites
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.trials.independent import PairsFrom, Trials, no_trials, one_of_each
from rasplens.compare.claims.trials.input_classes import InputClass
from rasplens.compare.claims.trials.judging import (
    AT_LEAST,
    FAILS,
    HOLDS,
    OPEN,
    UNTESTABLE,
    Status,
    judged,
    known_share,
)
from rasplens.compare.claims.trials.stopping import FIRST, until_decided
from rasplens.compare.config import CompareConfig
from rasplens.compare.evidence.subspaces.representations import (
    Place,
    Representation,
    explained_table,
    overlap_table,
    representations,
)
from rasplens.compare.pairing.answered import AnsweredInputs
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compare.term import Term

MORE: Final = 3
"""A variable of which some trials fail is asked about so many times as many."""

MOST_PLACES: Final = 4
"""Of a counterexample, so many positions are named."""


@dataclass(frozen=True)
class OneVariable(Subject):
    """A variable, taken from another input, changes answers as in the program.

    Attributes:
        name: The variable's.
    """

    level = "variables"
    tested = "With its value from another input"

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """The variable's, alone."""
        return (self.name,)

    def __str__(self) -> str:
        return f"variable {self.name}"


@dataclass(frozen=True, eq=False)
class VariableTests:
    """The evidence on the variables between input and output of the learned model.

    Attributes:
        drawn: The pairs of inputs for each that can be tested.
        representations: How the learned residual stream represents them.
        reference: Where the compiled model has them.
        interchanged: Each of them, interchanged.
    """

    drawn: Sequence[DrawnPairs]
    representations: Mapping[Place, Representation]
    reference: ReferenceSites
    interchanged: Sequence[Interchange]


class SiteIn(NamedTuple):
    """A site of a model."""

    model: StudiedModel
    site: Site


def _test(study: Study, evidence: Evidence, seed: int) -> VariableTests:
    drawn, held = draw_pairs(study, study.variables, seed), representations(study)
    reference = ReferenceSites(study, seed)
    return VariableTests(drawn, held, reference, interchanges(study, drawn, held, reference, seed))


def _claims(study: Study, evidence: Evidence, rng: np.random.Generator) -> Iterator[Claim]:
    tests = evidence.of(VARIABLES)
    by_name = {one.variable: one for one in tests.interchanged}
    for name in study.variables:
        if name in by_name:
            one = by_name[name]
            more = partial(_more, study, one.variable, SiteIn(study.learned, one.site), rng)
            claim = judged_interchange(one, study.scored.answered, rng, study.config, more)
            searched = partial(_searched, study, one, tests, rng)
            yield replace(claim, again=partial(_again, study, one, rng), searched=searched)
        else:
            yield untestable(OneVariable(name), study.why_not_interchangeable(name))


def _again(study: Study, one: Interchange, rng: np.random.Generator, of: InputClass) -> list[Trials]:
    """Trials of an interchange on a class of inputs."""
    return _in_class(study, one.variable, SiteIn(study.learned, one.site), rng, of)


def _searched(
    study: Study, one: Interchange, tests: VariableTests, rng: np.random.Generator, of: InputClass
) -> SearchedAnew:
    """Trials on a class, at the site that does best on other pairs of the class, and in the compiled model."""
    site = _site_in_class(study, one, tests.representations, int(rng.integers(2**31)), of)
    (chosen,) = (pairs.fitting for pairs in tests.drawn if pairs.fitting.variable == one.variable)
    known = tests.reference.sites(chosen).best
    sites = SiteIn(study.learned, site), SiteIn(study.scored.reference, known)
    return SearchedAnew(*(_in_class(study, one.variable, where, rng, of) for where in sites))


def _in_class(
    study: Study, variable: str, where: SiteIn, rng: np.random.Generator, of: InputClass
) -> list[Trials]:
    n, among = study.config.interchange_pairs, of.pairs_from(study.scored.answered)
    return _more(study, variable, where, rng, n, among)


def _site_in_class(
    study: Study, one: Interchange, learned: Mapping[Place, Representation], seed: int, of: InputClass
) -> Site:
    """The best site for one class of inputs, of all that do well everywhere, and of one that is searched there.

    What was chosen everywhere may err on a few inputs because it was chosen on too few of them, not because the
    model has no such variable there.
    """
    pairing, positions = study.fitting, study.variables[one.variable]
    among = of.pairs_from(pairing.answered)
    chosen = interchange_pairs(pairing, one.variable, positions, seed, among=among)
    if chosen is None:
        return one.site

    def score(site: Site) -> float:
        right = agreement(pairing.learned, chosen, site.point, site.subspaces).right
        rng, asked = np.random.default_rng(seed), (pairing.answered, chosen.base)
        trials = one_of_each(*asked, right, chosen.changes, rng, chosen.source)
        inside = trials.right[of.of(trials)]
        return float(inside.mean()) if inside.size else 0.0

    searched = find_sites(pairing.learned, chosen, learned, seed, study.config.das_steps).best
    return max((one.site, *one.good, searched), key=score)


def _more(
    study: Study,
    variable: str,
    where: SiteIn,
    rng: np.random.Generator,
    n: int,
    among: PairsFrom | None = None,
) -> list[Trials]:
    """Trials of an interchange on other pairs, of answers that change and that stay."""
    pairing, seed = study.scored, int(rng.integers(2**31))
    pairs = interchange_pairs(pairing, variable, study.variables[variable], seed, n, among)
    if pairs is None:
        return []
    right = agreement(where.model, pairs, where.site.point, where.site.subspaces).right
    asked = pairing.answered, pairs.base
    return [one_of_each(*asked, right, which, rng, pairs.source) for which in (pairs.changes, pairs.stays)]


def judged_interchange(
    one: Interchange,
    inputs: AnsweredInputs,
    rng: np.random.Generator,
    config: CompareConfig,
    more: Callable[[int], Sequence[Trials]],
) -> Claim:
    """The claim on a variable, from its interchange.

    Where some trials fail and the claim does not, others are asked: a class of inputs shows in more of them.

    Args:
        one: The interchange.
        inputs: Those that its pairs are of.
        rng: Draws which answer of a pair counts.
        config: How much is looked at.
        more: From a number, trials on so many other pairs of answers that change, and that stay; none if there are
            no such pairs.
    """
    subject, comparisons = OneVariable(one.variable), config.comparisons
    where = f"interchanged at {one.point} ({one.method}, rank {one.rank:.0f})"
    pairs, right = one.pairs, one.accuracy.right
    asked = [(right, pairs.changes), (right, pairs.stays)]
    if one.method != "component":
        asked.append((one.active.right, pairs.changes))
    trials = [one_of_each(inputs, pairs.base, *part, rng, pairs.source) for part in asked]
    if len(pairs.base) >= max(FIRST, config.interchange_pairs):
        trials[:2] = _until_decided(trials[:2], more, comparisons)
    found = judged_by_trials(subject, trials, one.control, True, where, comparisons)
    if found.status == HOLDS and one.control >= AT_LEAST:
        return untestable(subject, f"{where}: a control does as well ({one.control:.2f})")
    if found.status in (HOLDS, UNTESTABLE):
        return found
    if known_share(one.ceiling, one.n_ceiling, comparisons).low < AT_LEAST:
        why = f"{where}: the search finds it not even in the compiled model ({one.ceiling:.2f})"
        return untestable(subject, why)
    # That a search fails on other pairs than its own says that it had too few, not that there is nothing.
    fitted = known_share(one.site.fitted, len(one.pairs.base), comparisons)
    fails = FAILS == found.status == judged([fitted])
    others = f"{one.accuracy.score:.2f} on others"
    if one.method != "component" and one.active.score < one.accuracy.score:
        others = f"{others}, of which its active part {one.active.score:.2f}"
    reason = f"{where}: the search reaches {one.site.fitted:.2f} on its own pairs, {others}"
    status: Status = FAILS if fails else OPEN
    return replace(found, status=status, reason=reason, counterexample=_in_words(one, inputs))


def _in_words(one: Interchange, inputs: AnsweredInputs) -> str:
    """The first answer that is not the program's; empty where there is none."""
    pairs, agreed = one.pairs, one.accuracy
    if one.active.score < AT_LEAST <= agreed.score:
        return ""  # what is wrong is the path, not the answers
    wrong = np.argwhere(~agreed.right & (pairs.changes | pairs.stays))
    if not len(wrong):
        return ""
    row, answer = wrong[0].tolist()
    places = [str(inputs.task.positions[at]) for at in np.flatnonzero(pairs.intervened[row])]
    more = f" and {len(places) - MOST_PLACES} more" * (len(places) > MOST_PLACES)
    source, at = inputs.tokens(int(pairs.source[row])), ", ".join(places[:MOST_PLACES]) + more
    said = int(pairs.expected[row, answer]), int(agreed.given[row, answer])
    how = f"with {pairs.variable} of {source!r} at position{'s' * (len(places) > 1)} {at}"
    return inputs.answered_otherwise(int(pairs.base[row]), how, answer, *said)


def _until_decided(
    first: Sequence[Trials], more: Callable[[int], Sequence[Trials]], comparisons: int
) -> tuple[Trials, ...]:
    """Trials of an interchange, and where some of them fail others."""
    n, known, nothing = len(first[0]), [first], no_trials(first[0].inputs)

    def ask(number: int) -> Sequence[Trials]:
        return known.pop() if known else more(number) or [nothing for _ in first]

    return until_decided(ask, (n, MORE * n), comparisons)


TERMS = (
    Term(
        "interchange",
        "The axis of interchange interventions: a variable's subspace is patched from another input.",
        "claims.interchange.accuracy",
        ("interchange",),
    ),
    Term(
        "interchange pairs",
        "Pairs of a base and a source input between which one variable of the program is interchanged.",
        "claims.interchange.pairs",
        ("pairs",),
    ),
    Term(
        "intervention mask",
        "The positions of each interchange pair at which the variable is taken from the source.",
        "claims.interchange.pairs",
    ),
    Term(
        "IIA",
        "Interchange-intervention accuracy: of the answers that must change, the share that are the program's.",
        "claims.interchange.accuracy",
        ("iia",),
    ),
    Term(
        "specificity",
        "Of the answers that must not change, the share that stay the program's.",
        "claims.interchange.accuracy",
        ("specificity",),
    ),
    Term(
        "site",
        "The hook point, the method (component, linear map or DAS) and the subspace of an interchange.",
        "claims.interchange.sites",
        ("method", "rank", "linear map"),
    ),
    Term(
        "component",
        "All of what a head gathers, or of what a layer's heads or MLP write: interchanged whole, without a map.",
        "claims.interchange.sites",
        ("component",),
    ),
    Term(
        "ceiling",
        "What the same search reaches in the compiled model itself, where the variable is known to be.",
        "claims.interchange.accuracy",
        ("ceiling",),
    ),
    Term(
        "DAS",
        "Distributed alignment search: a subspace learned by gradient descent on interchange pairs.",
        "claims.interchange.das",
        ("DAS",),
    ),
    Term(
        "full-stream patching",
        "A control of interchange: the whole residual stream is taken from the source.",
        "claims.interchange.accuracy",
        ("full_stream",),
    ),
    Term(
        "random subspaces",
        "A control of interchange: subspaces of the same rank among the directions that the stream varies along.",
        "claims.interchange.accuracy",
        ("random",),
    ),
    Term(
        "active and dormant part",
        "Of what an interchange changes and the model reads: the part that moves with the variable, and the rest.",
        "claims.interchange.active_directions",
        ("active", "dormant"),
    ),
    Term(
        "mean-ablated subspace",
        "The accuracy drop when a variable's subspace, or a random one, is held at its mean over inputs.",
        "claims.interchange.accuracy",
        ("ablated", "ablated_random"),
    ),
)

VARIABLES = ClaimKind(
    name="variables",
    subjects=(OneVariable,),
    test=_test,
    claims=_claims,
    tables=lambda found: {
        "interchange": interchange_table(found.interchanged),
        "representations": explained_table(found.representations),
        "overlaps": overlap_table(found.representations),
    },
    terms=TERMS,
    scopes=("whole", "part"),
)
