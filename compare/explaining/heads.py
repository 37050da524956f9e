"""The heads that matter."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rasplens.compare.explaining.sample import Sample

LEAST_RELEVANT = 0.02
"""Heads matter at a position if as many answers change with what they gather there."""


@dataclass(frozen=True)
class Group:
    """Heads of one layer that are explained together.

    Attributes:
        layer: Theirs.
        heads: Which.
        relevance: By position, the share of the answers that change with what they gather there.
    """

    layer: int
    heads: tuple[int, ...]
    relevance: tuple[float, ...]

    @property
    def name(self) -> str:
        """In programs."""
        return f"l{self.layer}h{'_'.join(map(str, self.heads))}"

    @property
    def rows(self) -> list[int]:
        """The positions that matter; of heads that hardly do, all at which any answer changes."""
        least = LEAST_RELEVANT if self.matters else min(filter(None, self.relevance), default=1)
        return [at for at, share in enumerate(self.relevance) if share >= least]

    @property
    def matters(self) -> bool:
        """Whether enough answers change."""
        return max(self.relevance, default=0) >= LEAST_RELEVANT


def plans(sample: Sample, until: float = math.inf) -> Iterator[list[Group]]:
    """The heads that matter, in the order of the forward pass: first each alone, then those of a layer together.

    Heads that stand in for each other matter only together. Last, every head that changes any answer.

    Args:
        sample: The model.
        until: On the clock of `time.monotonic`, from when on there is none.
    """
    studied = sample.studied
    alone, together, any_change = list[Group](), list[Group](), list[Group]()
    for layer in studied.attending_layers:
        if time.monotonic() > until:
            return
        heads = tuple(studied.heads_of(layer))
        each = [group for head in heads if (group := _group(sample, layer, (head,))).rows]
        mattering = [group for group in each if group.matters]
        everyone = [_fewest(sample, _group(sample, layer, heads))] if len(heads) > 1 else mattering
        everyone = [group for group in everyone if group.matters]
        alone += mattering or everyone
        together += everyone or mattering
        any_change += each or everyone
    yield from {tuple(one.name for one in plan): plan for plan in (alone, together, any_change)}.values()


def _group(sample: Sample, layer: int, heads: tuple[int, ...]) -> Group:
    relevance = [
        1 - sample.kept([sample.head_elsewhere(layer, heads, position)])
        for position in range(sample.studied.n_pos)
    ]
    return Group(layer, heads, tuple(relevance))


def _fewest(sample: Sample, group: Group) -> Group:
    """The heads without those that change nothing beside the others, all together."""
    fewest = group
    for head in group.heads:
        others = tuple(one for one in fewest.heads if one != head)
        fewer = _group(sample, group.layer, others) if others else fewest
        lost = np.array(group.relevance) - np.array(fewer.relevance)
        fewest = fewer if lost.max() < LEAST_RELEVANT else fewest
    return fewest
