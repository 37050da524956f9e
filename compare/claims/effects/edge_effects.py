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
from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.input_classes import InputClass
from rasplens.compare.subject.studied_model import Head, named

TO_FIND: Final = 32
"""Pairs of inputs with which heads are looked for; none of their inputs is among those that judge these heads."""

DRAWN: Final = 4
"""So many times the questions that are asked are drawn."""

OF_CONTROLS: Final = 32
"""Pairs of inputs behind the control of other edges, at most."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The heads of all groups.

    Attributes:
        heads: These; none where nothing gathers.
        carry: How much of the difference the group that carries most does, by the upper end of its interval.
        unknown: What the program computes in heads of which no group is known.
    """

    heads: tuple[Head, ...]
    carry: float
    unknown: tuple[str, ...] = ()


def drawn_for(drawn: Questions, n: int) -> Questions:
    """So many of the questions; of keys and queries, whose edges are drawn, those that tell most."""
    return telling(drawn, n) if isinstance(drawn.subject, Keys | Queries) else some(drawn, n)


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

    def of(self, carry: float) -> "_Moved":
        """The same, of what the patched heads carry."""
        control = None if self.control is None else turned_of(self.control, carry)
        return replace(
            self, changed=turned_of(self.changed, carry), kept=kept_of(self.kept, carry), control=control
        )


def _moved(asking: Asking, asked: Questions, heads: Sequence[Head] | None) -> _Moved:
    """What questions move in some heads, or in all."""
    patch, logits = asked.patch, with_edges(asking.learned, asked.patch, heads)
    changing = asking.trials(patch.base, asked.changes, asked.expected)
    theirs = asking.pairing.reference.answers()[patch.source]
    staying = asking.trials(patch.base, asked.at_risk, None if patch.part == "attention" else theirs)
    changed, stayed = (asking.measured(one, patch.base, logits) for one in (changing, staying))
    changes = asking.preferring(changing, patch, changed[1] < 0)
    stays = asking.preferring(staying, patch, stayed[1] > 0)
    control = asking.on_others(changing, patch, logits)
    return _Moved(turned(*changed), kept(*stayed), control, (changes, stays))


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
    if isinstance(subject, Keys | Queries) and is_large and groups.unknown:
        of = " and ".join(groups.unknown)
        return untested(
            subject, f"which heads compute {of} is not known: in all, others would change", is_open=True
        )
    if isinstance(subject, Keys | Queries) and groups.heads:
        heads = groups.heads if is_large else _the_better(asking, asked, groups)
        carry = 1.0 if heads is None else groups.carry
    found = _moved(asking, asked, heads).of(carry)
    done = "removed" if patch.part == "attention" else "patched"
    where = "" if heads is None else f", in {named(heads)}"
    where += f", which carry {carry:.0%} at most" if carry < 1 else ""
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
    again = asked.again(of.pairs_from(asking.pairing.answered), DRAWN * n)
    return _moved(asking, drawn_for(again, n), heads).trials


def _along_others(asking: Asking, asked: Questions) -> float:
    """The effect of as many other edges."""
    few = some(asked, OF_CONTROLS)
    patch = replace(few.patch, edges=asking.other_edges(few.patch))
    trials = asking.trials(patch.base, few.changes, few.expected)
    return turned(*asking.measured(trials, patch.base, with_edges(asking.learned, patch))).share


def _the_better(asking: Asking, asked: Questions, groups: Groups) -> tuple[Head, ...] | None:
    """The heads of groups, or None for all heads: in whichever of them keys or queries decide more.

    Other heads may read the same keys for something else, as most of a large model's do, and a group may be too
    small. The pairs that tell judge nothing. Where they decide nothing in the program, they should not in its
    heads.
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

    if not len(trials):
        return None if groups.unknown else groups.heads
    return groups.heads if decides(groups.heads) > decides(None) else None
