"""Kinds of claims: what each is about, how it is tested and judged, its tables and its terms."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from rasplens.compare.claims.claim import Claim, Subject
from rasplens.compare.study import Scope, Study
from rasplens.compare.term import Term

E = TypeVar("E")

Progress = Callable[[str], None]
"""Called with the name of each stage as it begins; and of long ones, with each step, as `stage: step`."""


@dataclass(frozen=True, eq=False)
class ClaimKind(Generic[E]):
    """A kind of claim that programs make.

    Attributes:
        name: What is tested.
        subjects: The types of what such claims are about.
        test: From the models, the evidence so far and a seed: its own.
        claims: From the models and all evidence, the claims. Which answer of a pair counts is drawn.
        tables: The tidy tables of the evidence, by name.
        terms: For the glossary.
        scopes: What of a model such claims are made of.
    """

    name: str
    subjects: tuple[type[Subject], ...]
    test: Callable[[Study, "Evidence", int], E]
    claims: Callable[[Study, "Evidence", np.random.Generator], Iterable[Claim]]
    tables: Callable[[E], dict[str, pd.DataFrame]] = lambda _: {}
    terms: tuple[Term, ...] = ()
    scopes: tuple[Scope, ...] = ("whole",)


def unsaid(step: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence that claims are judged by.

    Attributes:
        by_kind: By the name of the kind of claim.
        step: Called with each step of a test that takes long, as it begins.
    """

    by_kind: Mapping[str, Any] = field(default_factory=dict)
    step: Progress = unsaid

    def of(self, kind: ClaimKind[E]) -> E:
        """The evidence on one kind of claim."""
        found: E = self.by_kind[kind.name]
        return found

    def also(self, kind: ClaimKind[E], found: E) -> "Evidence":
        """Return this evidence and that on another kind."""
        return replace(self, by_kind={**self.by_kind, kind.name: found})
