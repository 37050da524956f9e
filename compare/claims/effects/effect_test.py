"""A claim on a part of a model, with the effects that it is judged by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rasplens.compare.claims.claim import Subject
from rasplens.compare.claims.effects.effect import Effect
from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.input_classes import InputClass


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
        is_open: Whether, with nothing to judge it by, it leaves the program open: what holds may hold of others.
    """

    subject: Subject
    parts: tuple[Effect, ...]
    control: Effect | None
    floor: float
    reason: str
    substantial: bool = True
    trials: tuple[Trials, ...] = ()
    again: Callable[[InputClass], Sequence[Trials]] | None = None
    is_open: bool = False


def untested(subject: Subject, why: str, is_open: bool = False) -> EffectTest:
    """A claim with nothing to judge it by, and why; `is_open` as there."""
    return EffectTest(subject, (), None, np.nan, why, is_open=is_open)
