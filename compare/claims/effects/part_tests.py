"""The tests of a part of a model: interventions, with how far each moves the model's logits.

The compiled model is the oracle: trials are those in which it answers as the claim says.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Final

import numpy as np

from rasplens.compare.claims.claim import Subject
from rasplens.compare.claims.edges.agreement import FEWEST, patched_heads
from rasplens.compare.claims.edges.attention_scores import why_not_patchable
from rasplens.compare.claims.edges.edge_patching import EdgePatch
from rasplens.compare.claims.edges.program_edges import Aggregates
from rasplens.compare.claims.edges.questions import (
    CountedEdges,
    GatheredEdges,
    Keys,
    Queries,
    Questions,
    questions,
)
from rasplens.compare.claims.effects.asking import Asking, some
from rasplens.compare.claims.effects.effect import Effect, LogitDifferences, kept, left, turned
from rasplens.compare.claims.effects.feeding import feeding
from rasplens.compare.claims.effects.groups import Group, group_of
from rasplens.compare.claims.effects.passes import Logits, with_edges, with_edges_that_feed, with_other_heads
from rasplens.compare.claims.effects.subjects import CarriedBy, Fed, Sufficient
from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.input_classes import InputClass
from rasplens.compare.study import Study
from rasplens.compare.subject.studied_model import Head, named
from rasplens.model import random_streams

TO_FIND: Final = 32
"""Pairs of inputs with which heads are looked for; none of their inputs is among those that judge these heads."""

OF_CONTROLS: Final = 32
"""Pairs of inputs behind the control of other edges, at most."""


@dataclass(frozen=True, eq=False)
class EffectTest:
    """A claim on a part of a model, with the effects that it is judged by.

    Attributes:
        subject: What is claimed.
        parts: The effects that all have to be as claimed.
        control: The effect on some other answer in the trials of the first part; None if there is no such answer.
        floor: The effect of other edges, or of other heads; NaN where nothing else is patched.
        reason: What was done; why there is nothing to judge, if there are no effects.
        substantial: Whether it says that the program's edges decide, and not only which heads are at work.
        trials: Whether the model prefers the answer that it should, for classes in which it does not.
        again: Such trials on a class of inputs; None where none can be asked.
    """

    subject: Subject
    parts: tuple[Effect, ...]
    control: Effect | None
    floor: float
    reason: str
    substantial: bool = True
    trials: tuple[Trials, ...] = ()
    again: Callable[[InputClass], Sequence[Trials]] | None = None


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


def part_tests(study: Study, seed: int) -> PartTests:
    """All claims that a program makes as a part of a model, tested."""
    pairing, n = study.scored, study.config.questions
    if pairing.learned.vocabulary.columns is None:
        why = "the model answers with numbers or with several labels, and has no logit for each answer"
        return PartTests(why_none=why)
    if why := why_not_patchable(pairing.learned):
        return PartTests(why_none=why)
    if (given := int(pairing.agreed[pairing.reference.answers() >= 0].sum())) < FEWEST:
        return PartTests(why_none=f"the model gives {given} of the program's answers, where {FEWEST} are needed")
    asking = Asking(pairing, random_streams.rng(seed, "effects"))
    asked = [some(one, n) for one in questions(pairing, seed, n)]
    gathering = {
        one.subject.aggregates: _gathering(asking, one, one.subject)
        for one in asked
        if isinstance(one.subject, GatheredEdges)
    }
    groups = [one.group.heads for one in gathering.values() if one.group is not None]
    heads = tuple(sorted(set(chain.from_iterable(groups))))
    routes = [_route(asking, one, heads, study.is_large) for one in asked]
    found = [_carried(asking, names, one) for names, one in gathering.items() if one.group is not None]
    fed, enough = _fed(asking, gathering), _enough(asking, gathering, asked)
    return PartTests([*routes, *found, *fed, *enough], gathering)


@dataclass(frozen=True, eq=False)
class _Moved:
    """What questions move.

    Attributes:
        changed: The effect where the answer should change.
        kept: The effect where it should stay.
        control: The first on some other answer, in the same trials; None of a task with two answers.
        trials: Of both, whether the model prefers the answer that it should.
    """

    changed: Effect
    kept: Effect
    control: Effect | None
    trials: tuple[Trials, Trials]


def _moved(asking: Asking, asked: Questions, heads: Sequence[Head] | None) -> _Moved:
    """What questions move in some heads, or in all."""
    patch, logits = asked.patch, with_edges(asking.learned, asked.patch, heads)
    changing = asking.trials(patch.base, asked.changes, asked.expected)
    theirs = asking.pairing.reference.answers()[patch.source]
    staying = asking.trials(patch.base, asked.at_risk, None if patch.part == "attention" else theirs)
    changed, stayed = (asking.measured(one, patch.base, logits) for one in (changing, staying))
    changes = asking.preferring(changing, patch, changed[1] < 0)
    stays = asking.preferring(staying, patch, stayed[1] > 0)
    control = _on_others(asking, changing, patch, logits)
    return _Moved(turned(*changed), kept(*stayed), control, (changes, stays))


def _route(asking: Asking, asked: Questions, of_groups: tuple[Head, ...], is_large: bool) -> EffectTest:
    """Values along edges in all heads; keys or queries there or in groups; counted edges where heads may count."""
    subject, patch, heads = asked.subject, asked.patch, None
    if not len(asked):
        return _untested(subject, f"none of {asked.drawn:,} pairs of inputs could be asked")
    if isinstance(subject, CountedEdges):
        if is_large:
            return _untested(subject, "which heads count is not looked for in a model of this size")
        heads = patched_heads(asking.pairing, asked)
    if isinstance(subject, Keys | Queries) and of_groups:
        heads = _the_better(asking, asked, of_groups)
    found = _moved(asking, asked, heads)
    done = "removed" if patch.part == "attention" else "patched"
    where = "" if heads is None else f", in {named(heads)}"
    reason = f"{patch.part} {done} along {patch.edges.mean():.0%} of the edges{where}"
    if len(found.changed):
        by_other_means = 1 - found.trials[0].right.mean()
        reason += f"; the model keeps its answer on {by_other_means:.0%} of the inputs"
    floor = _along_others(asking, asked) if patch.part == "values" else np.nan
    parts, again = (found.changed, found.kept), partial(_again, asking, asked, heads)
    return EffectTest(subject, parts, found.control, floor, reason, trials=found.trials, again=again)


def _again(
    asking: Asking, asked: Questions, heads: Sequence[Head] | None, of: InputClass
) -> tuple[Trials, Trials]:
    """Other trials, on a class of inputs."""
    n = asking.pairing.config.questions
    return _moved(asking, some(asked.again(of.pairs_from(asking.pairing.answered), n), n), heads).trials


def _along_others(asking: Asking, asked: Questions) -> float:
    """The effect of as many other edges."""
    few = some(asked, OF_CONTROLS)
    patch = replace(few.patch, edges=asking.other_edges(few.patch))
    trials = asking.trials(patch.base, few.changes, few.expected)
    return turned(*asking.measured(trials, patch.base, with_edges(asking.learned, patch))).share


def _the_better(asking: Asking, asked: Questions, of_groups: tuple[Head, ...]) -> tuple[Head, ...] | None:
    """The heads of groups, or None for all heads: in whichever of them keys or queries decide more.

    Other heads may read the same keys for something else, and a group may be too small. The pairs that tell judge
    nothing.
    """
    few = some(asked.again(asking.halves[0], TO_FIND), TO_FIND)
    trials = asking.trials(few.patch.base, few.changes, few.expected)

    def decides(heads: tuple[Head, ...] | None) -> float:
        logits = with_edges(asking.learned, few.patch, heads)
        own, control = (
            turned(*asking.measured(one, few.patch.base, logits)).share
            for one in (trials, asking.against_others(trials))
        )
        return float(own - np.fmax(control, 0))

    return of_groups if len(trials) and decides(of_groups) > decides(None) else None


def _untested(subject: Subject, why: str) -> EffectTest:
    return EffectTest(subject, (), None, np.nan, why)


def _on_others(asking: Asking, trials: LogitDifferences, patch: EdgePatch, logits: Logits) -> Effect | None:
    """The effect on some other answer, in the same trials; None of a task with two answers."""
    others = asking.against_others(trials)
    return turned(*asking.measured(others, patch.base, logits)) if len(others) == len(trials) else None


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


def _fed(asking: Asking, gathering: Mapping[Aggregates, Gathering]) -> Iterator[EffectTest]:
    """What aggregates gather, as it reaches a part of the heads that read it."""
    reference, learned = asking.pairing.reference, asking.learned
    for feeds in feeding(asking.pairing.compiled.program):
        one, reader = gathering.get(feeds.source), gathering.get(feeds.reader)
        if one is None or reader is None or reader.group is None or not reader.compiled:
            continue
        heads = reader.group.heads
        subject, patch = Fed(feeds.source, feeds.part, feeds.reader, heads), one.asked.patch
        if not len(one.asked):
            yield _untested(subject, "no pair of inputs could be asked")
            continue
        through = reference.codes(with_edges_that_feed(reference, patch, feeds.part, reader.compiled), patch.base)
        which = one.asked.changes & (through == one.asked.expected)
        logits = with_edges_that_feed(learned, patch, feeds.part, heads)
        trials = asking.trials(patch.base, which, one.asked.expected)
        control = _on_others(asking, trials, patch, logits)
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
