"""The effect of patched edges: values along them in all heads, keys and queries where values are carried."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from rasplens.compare.claims.edges.agreement import patched_heads
from rasplens.compare.claims.edges.questions import CountedEdges, Keys, Queries, Questions
from rasplens.compare.claims.effects.asking import Asking, some, telling
from rasplens.compare.claims.effects.effect import Effect, kept, kept_of, turned, turned_of
from rasplens.compare.claims.effects.effect_test import EffectTest, untested
from rasplens.compare.claims.effects.passes import with_edges
from rasplens.compare.claims.trials.independent import PairsFrom, Trials
from rasplens.compare.claims.trials.input_classes import InputClass
from rasplens.compare.subject.studied_model import Head, named

TO_FIND: Final = 32
"""Pairs of inputs with which heads are looked for."""

DRAWN: Final = 4
"""Of keys and queries, so many questions are drawn for each that is asked."""

LEAST_CARRIED: Final = 0.5
"""Of heads that carry less, keys and queries are not asked: what others carry would hide what these do."""

OF_CONTROLS: Final = 32
"""Pairs of inputs behind the control of other edges, at most."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The heads of all groups.

    Attributes:
        heads: These; none where nothing gathers.
        carry: Of the largest share of the difference that one group carries, the upper end of its interval: so
            that no claim on keys and queries fails, or holds, by too small a share. NaN where none is known.
        unknown: What the program computes in heads of which no group is known.
    """

    heads: tuple[Head, ...]
    carry: float
    unknown: tuple[str, ...] = ()

    @property
    def why_none(self) -> str:
        """Why keys and queries cannot be asked of these heads; empty where they can."""
        if self.unknown:
            return f"which heads compute {' and '.join(self.unknown)} is not known"
        if not self.carry >= LEAST_CARRIED:
            return f"the heads that are known carry {self.carry:.0%}" if self.carry > 0 else "no heads are known"
        return ""


def drawn_for(drawn: Questions, n: int, pairs: PairsFrom | None = None) -> Questions:
    """So many of the questions; of keys and queries, whose edges are drawn, the most telling of more."""
    if not isinstance(drawn.subject, Keys | Queries):
        return some(drawn, n)
    return telling(drawn.again(pairs, DRAWN * n), n)


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


def _moved(asking: Asking, asked: Questions, heads: Sequence[Head] | None, carry: float) -> _Moved:
    """What questions move in some heads, or in all, of what these carry; a trial is right from half of that on."""
    patch, logits = asked.patch, with_edges(asking.learned, asked.patch, heads)
    changing = asking.trials(patch.base, asked.changes, asked.expected)
    theirs = asking.pairing.reference.answers()[patch.source]
    staying = asking.trials(patch.base, asked.at_risk, None if patch.part == "attention" else theirs)
    changed, stayed = (asking.measured(one, patch.base, logits) for one in (changing, staying))
    changes = asking.preferring(changing, patch, changed[1] < (1 - carry) * changed[0])
    stays = asking.preferring(staying, patch, stayed[1] > (1 - carry) * stayed[0])
    control = asking.on_others(changing, patch, logits)
    return _Moved(
        turned_of(turned(*changed), carry),
        kept_of(kept(*stayed), carry),
        None if control is None else turned_of(control, carry),
        (changes, stays),
    )


def edge_test(asking: Asking, asked: Questions, groups: Groups, is_large: bool) -> EffectTest:
    """Values along edges in all heads; keys or queries there or in groups; counted edges where heads may count.

    What keys and queries of groups decide is a share of what these heads carry.
    """
    subject, patch, heads = asked.subject, asked.patch, None
    if not len(asked):
        return untested(subject, f"none of {asked.drawn:,} pairs of inputs could be asked")
    if isinstance(subject, CountedEdges):
        if is_large:
            return untested(subject, "which heads count is not looked for in a model of this size", is_open=True)
        heads = patched_heads(asking.pairing, asked)
    carry = 1.0
    if isinstance(subject, Keys | Queries):
        if is_large and groups.why_none:
            why = f"{groups.why_none}, and patching all heads would change what others read"
            return untested(subject, why, is_open=True)
        if not groups.why_none and (is_large or _are_better(asking, asked, groups.heads)):
            heads, carry = groups.heads, groups.carry
    found = _moved(asking, asked, heads, carry)
    done = "removed" if patch.part == "attention" else "patched"
    where = "" if heads is None else f", in {named(heads)}"
    where += f", which carry {carry:.0%} at most" if carry < 1 else ""
    reason = f"{patch.part} {done} along {patch.edges.mean():.0%} of the edges{where}"
    if len(found.changed):
        by_other_means = 1 - found.trials[0].right.mean()
        reason += f"; the model keeps its answer on {by_other_means:.0%} of the inputs"
    floor = _along_others(asking, asked) if patch.part == "values" else np.nan
    parts, again = (found.changed, found.kept), partial(_again, asking, asked, heads, carry)
    return EffectTest(subject, parts, found.control, floor, reason, trials=found.trials, again=again)


def _again(
    asking: Asking, asked: Questions, heads: Sequence[Head] | None, carry: float, of: InputClass
) -> tuple[Trials, Trials]:
    """Other trials, on a class of inputs."""
    n = asking.pairing.config.questions
    pairs = of.pairs_from(asking.pairing.answered)
    return _moved(asking, drawn_for(asked.again(pairs, n), n, pairs), heads, carry).trials


def _along_others(asking: Asking, asked: Questions) -> float:
    """The effect of as many other edges."""
    few = some(asked, OF_CONTROLS)
    patch = replace(few.patch, edges=asking.other_edges(few.patch))
    trials = asking.trials(patch.base, few.changes, few.expected)
    return turned(*asking.measured(trials, patch.base, with_edges(asking.learned, patch))).share


def _are_better(asking: Asking, asked: Questions, of_groups: tuple[Head, ...]) -> bool:
    """Whether keys or queries decide more in the heads of groups than in all heads.

    Other heads may read the same keys for something else, as most of a large model's do, and a group may be too
    small. Where they decide nothing in the program, they should not in its heads.
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

    return not len(trials) or decides(of_groups) > decides(None)
