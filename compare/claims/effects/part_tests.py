"""The tests of a part of a model: interventions, with how far each moves the model's logits.

The compiled model is the oracle: trials are those in which it answers as the claim says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from rasplens.compare.claims.claim import Subject
from rasplens.compare.claims.edges.agreement import FEWEST
from rasplens.compare.claims.edges.attention_scores import why_not_patchable
from rasplens.compare.claims.edges.edge_patching import EdgePatch
from rasplens.compare.claims.edges.program_edges import Aggregates
from rasplens.compare.claims.edges.questions import CountedEdges, GatheredEdges, Questions, questions
from rasplens.compare.claims.effects.asking import Asking, some
from rasplens.compare.claims.effects.edge_effects import LEAST_CARRIED, TO_FIND, Groups, drawn_for, edge_test
from rasplens.compare.claims.effects.effect import Effect, left, turned
from rasplens.compare.claims.effects.effect_test import EffectTest, untested
from rasplens.compare.claims.effects.feeding import feeding
from rasplens.compare.claims.effects.groups import Group, group_of
from rasplens.compare.claims.effects.passes import with_edges, with_edges_that_feed, with_other_heads
from rasplens.compare.claims.effects.subjects import CarriedBy, Fed, Sufficient
from rasplens.compare.claims.kind import Progress, unsaid
from rasplens.compare.claims.trials.judging import AT_LEAST, least_trials
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import Head, named
from rasplens.model import random_streams


@dataclass(frozen=True, eq=False)
class Gathering:
    """What aggregates with one selector gather, and the heads of the model that do.

    Attributes:
        asked: Questions on values along the selector's edges.
        compiled: The heads of the compiled model.
        group: Those of the model; None where values along these edges have hardly any effect.
    """

    asked: Questions
    compiled: tuple[Head, ...]
    group: Group | None


@dataclass(frozen=True, eq=False)
class PartTests:
    """All tests of a part.

    Attributes:
        found: Each.
        gathering: By the aggregates that share a selector.
        why_none: Why nothing could be tested; empty where something was.
    """

    found: Sequence[EffectTest] = ()
    gathering: Mapping[Aggregates, Gathering] = field(default_factory=dict)
    why_none: str = ""


def part_tests(study: Study, seed: int, step: Progress = unsaid) -> PartTests:
    """All claims that a program makes as a part of a model, tested; each test begins with a call of `step`."""
    pairing, n = study.scored, study.config.questions
    if pairing.learned.vocabulary.columns is None:
        why = "the model answers with numbers or with several labels, and has no logit for each answer"
        return PartTests(why_none=why)
    if why := why_not_patchable(pairing.learned):
        return PartTests(why_none=why)
    if (given := int(pairing.agreed[pairing.reference.answers() >= 0].sum())) < FEWEST:
        return PartTests(why_none=f"the model gives {given} of the program's answers, where {FEWEST} are needed")
    asking = Asking(pairing, random_streams.rng(seed, "effects"))
    asked = [drawn_for(one, n) for one in questions(pairing, seed, n)]
    gathering = {}
    for one in asked:
        if isinstance(one.subject, GatheredEdges):
            step(f"heads of {' and '.join(one.subject.aggregates)}")
            gathering[one.subject.aggregates] = _gathering(asking, one, one.subject)
    carried = {names: _carried(asking, names, one) for names, one in gathering.items() if one.group is not None}
    carries = {names: _most(asking, test.parts[0]) for names, test in carried.items()}
    groups = _groups(gathering, carries, [one.subject for one in asked])
    routes = []
    for one in asked:
        step(str(one.subject))
        routes.append(edge_test(asking, one, groups, study.is_large))
    step("heads that feed others")
    fed, enough = _fed(asking, gathering, carries), _enough(asking, gathering, asked)
    return PartTests([*routes, *carried.values(), *fed, *enough], gathering)


def _most(asking: Asking, effect: Effect) -> float:
    """The upper end of the share that a group carries, 1 at most; NaN where too few trials tell."""
    config = asking.pairing.config
    if len(effect) < least_trials(AT_LEAST, config.comparisons) or not effect.expected.sum() > 0:
        return float("nan")
    return min(1.0, effect.interval(config.bootstrap_draws, asking.rng).high)


def _groups(
    gathering: Mapping[Aggregates, Gathering], carries: Mapping[Aggregates, float], subjects: Sequence[Subject]
) -> Groups:
    """The heads of all groups, and what the one that carries most does."""
    groups = [one.group.heads for one in gathering.values() if one.group is not None]
    unknown = [" and ".join(names) for names, one in gathering.items() if one.group is None]
    unknown += ["the counts"] * any(isinstance(one, CountedEdges) for one in subjects)
    known = [end for end in carries.values() if end == end]
    heads = tuple(sorted(set(chain.from_iterable(groups))))
    return Groups(heads, max(known, default=float("nan")), tuple(unknown))


def _gathering(asking: Asking, asked: Questions, subject: GatheredEdges) -> Gathering:
    """The heads that carry what is gathered along a selector's edges."""
    found = asked.again(asking.halves[0], TO_FIND).of(slice(TO_FIND))
    trials = asking.trials(found.patch.base, found.changes, found.expected)
    return Gathering(asked, subject.heads, group_of(asking.learned, found.patch, trials))


def _carried(asking: Asking, names: Aggregates, one: Gathering) -> EffectTest:
    """What a few heads carry of what is gathered, and other heads."""
    assert one.group is not None
    n, heads = asking.pairing.config.questions // 2, one.group.heads
    asked = some(one.asked.again(asking.halves[1], n), n)
    patch = asked.patch
    trials = asking.trials(patch.base, asked.changes, asked.expected)

    def effect(heads: Sequence[Head] | None) -> Effect:
        return turned(*asking.measured(trials, patch.base, with_edges(asking.learned, patch, heads)))

    own, of_all = effect(heads), effect(None)
    reason = f"values patched in these heads alone: {_ratio(own, of_all):.0%} of the effect of all"
    control = effect(asking.other_heads(heads)).share
    return EffectTest(CarriedBy(names, heads), (own,), None, control, reason, substantial=False)


def _ratio(own: Effect, of_all: Effect) -> float:
    return float(Effect(own.moved, of_all.moved).share)


def _fed(
    asking: Asking, gathering: Mapping[Aggregates, Gathering], carries: Mapping[Aggregates, float]
) -> Iterator[EffectTest]:
    """What aggregates gather, as it reaches a part of the heads that read it; not of heads that carry little."""
    reference, learned = asking.pairing.reference, asking.learned
    for feeds in feeding(asking.pairing.compiled.program):
        one, reader = gathering.get(feeds.source), gathering.get(feeds.reader)
        if one is None or reader is None or reader.group is None or not reader.compiled:
            continue
        heads = reader.group.heads
        subject, patch = Fed(feeds.source, feeds.part, feeds.reader, heads), one.asked.patch
        if not carries[feeds.reader] >= LEAST_CARRIED:
            yield untested(subject, f"the heads that are known carry less than {LEAST_CARRIED:.0%}")
            continue
        if not len(one.asked):
            yield untested(subject, "no pair of inputs could be asked")
            continue
        through = reference.codes(with_edges_that_feed(reference, patch, feeds.part, reader.compiled), patch.base)
        which = one.asked.changes & (through == one.asked.expected)
        logits = with_edges_that_feed(learned, patch, feeds.part, heads)
        trials = asking.trials(patch.base, which, one.asked.expected)
        control = asking.on_others(trials, patch, logits)
        reason = f"values patched as far as they reach the {feeds.part} of {named(heads)}"
        found = turned(*asking.measured(trials, patch.base, logits))
        yield EffectTest(subject, (found,), control, np.nan, reason)


def _enough(
    asking: Asking, gathering: Mapping[Aggregates, Gathering], asked: Sequence[Questions]
) -> Iterator[EffectTest]:
    """Whether the heads of all groups give the answer with all other heads resampled; none if some count."""
    groups = [one.group for one in gathering.values() if one.group is not None]
    if not groups or len(groups) < len(gathering) or any(isinstance(one.subject, CountedEdges) for one in asked):
        return
    heads = tuple(sorted(set(chain.from_iterable(group.heads for group in groups))))
    compiled = set(chain.from_iterable(one.compiled for one in gathering.values()))
    n = max(1, asking.pairing.config.questions // 2 // len(gathering))
    several = [some(one.asked, n) for one in gathering.values()]
    base, source, edges = (
        np.concatenate([getattr(one.patch, name) for one in several]) for name in ("base", "source", "edges")
    )
    which = np.concatenate([one.changes for one in several])
    patch, reference = EdgePatch(base, source, edges, "values"), asking.pairing.reference
    stays = reference.codes(with_other_heads(reference, patch, compiled), base) == reference.answers()[base]
    trials = asking.trials(base, which & stays)

    def remains(heads: Sequence[Head]) -> Effect:
        return left(*asking.measured(trials, base, with_other_heads(asking.learned, patch, heads)))

    reason = "the share of the difference to other answers that is left with all other heads resampled"
    control = remains(asking.other_heads(heads)).share
    yield EffectTest(Sufficient(heads), (remains(heads),), None, control, reason, substantial=False)
