"""A sample on which heads leave what they leave on other inputs, those of each step on inputs of their own.

On a sample, variables go together: what a head gathers may follow from the token where it is read. Here not.
So what follows is told by the variable that a model reads, and not by another one that goes with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from rasplens.compare.claims.edges.attention_scores import Activations, keep, projection
from rasplens.compare.explaining.known import Known
from rasplens.compare.explaining.sample import Sample
from rasplens.compile.rasp.batch_interpreter import UNDEFINED
from rasplens.model.hook_points import act_name
from rasplens.model.interventions import Replace, of_each_head, torch_hooks

UNMET = -1
"""The code of a value that the sample does not tell: nowhere does what it is computed from have such values."""

Heads = tuple[int, tuple[int, ...]]
"""A layer and some heads of it."""

Source = tuple[Int[np.ndarray, "input #pos"], Int[np.ndarray, "input pos"]]
"""By input and position, another input and a position of it."""


@dataclass(frozen=True, eq=False)
class Crossed:
    """A sample with what some heads leave taken from other inputs.

    Attributes:
        sample: The model, and its inputs.
        made: By heads, the names of the variables that they leave at the query.
    """

    sample: Sample
    made: Mapping[Heads, Sequence[str]]

    @property
    def moved(self) -> Bool[np.ndarray, " input"]:
        """Every other input: what its heads leave comes from other positions too. What that tells counts least."""
        return np.arange(len(self.sample)) % 2 == 1

    @cached_property
    def _sources(self) -> Mapping[Heads, Source]:
        """By heads, the inputs and positions that theirs come from; half of them from other positions."""
        n, n_pos = len(self.sample), self.sample.studied.n_pos
        found = {}
        for i, heads in enumerate(self.made):
            order = np.roll(self.sample.sources[i % len(self.sample.sources)], 1 + i)
            by = np.where(self.moved, 1 + np.arange(n) // 2 % max(n_pos - 1, 1), 0)
            found[heads] = order[:, None], (np.arange(n_pos) + by[:, None]) % n_pos
        return found

    @cached_property
    def _sources_of(self) -> Mapping[str, Source]:
        return {name: self._sources[heads] for heads, names in self.made.items() for name in names}

    def codes(self, one: Known) -> Int[np.ndarray, "input pos"] | None:
        """A variable's values as places in `values`; `UNMET` where the sample does not tell it.

        None of a variable that other heads would have to make, or that does not follow from what it needs.
        """
        if one.name in self._sources_of:
            return np.asarray(one.codes[self._sources_of[one.name]])
        if not one.needs:
            return one.codes
        read = [self.codes(needed) for needed in one.needs]
        if one.gathers or any(codes is None for codes in read):
            return None
        theirs = np.stack([codes for codes in read if codes is not None])
        sizes = [len(needed.values) for needed in one.needs]
        own = np.ravel_multi_index([needed.codes for needed in one.needs], sizes)
        keys, first, place = np.unique(own, return_index=True, return_inverse=True)
        rule = one.codes.ravel()[first]
        if (rule[place.reshape(own.shape)] != one.codes).any():
            return None
        asked = np.ravel_multi_index(list(np.maximum(theirs, UNDEFINED)), sizes)
        found = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        met = (theirs != UNMET).all(axis=0) & (keys[found] == asked)
        return np.where(met, rule[found], UNMET)

    @cached_property
    def _interventions(self) -> list[Replace]:
        found = []
        places = np.array(self.sample.studied.vocabulary.positions)
        for (layer, heads), (inputs, positions) in self._sources.items():
            point = act_name("z", layer)
            z = self.sample.studied.whole(point)
            theirs, where = z.copy(), np.zeros(z.shape[:3], dtype=bool)
            theirs[:, places] = z[inputs, places[positions]]
            where[:, places[:, None], heads] = True
            found.append(Replace(point, torch.as_tensor(theirs), where))
        return found

    @cached_property
    def answers(self) -> Int[np.ndarray, "input answer"]:
        """The model's answers."""
        studied = self.sample.studied
        return studied.codes(studied.logits(torch_hooks(self._interventions)))

    def of_heads(self, layer: int, letter: str) -> Float[np.ndarray, "input ctx head d_head"]:
        """Each head's queries, keys or values, at all of the model's positions."""
        studied = self.sample.studied
        return of_each_head(self._at(projection(studied, layer, letter)), studied.model.cfg.n_heads, np)

    def attention(self, layer: int, heads: Sequence[int]) -> Float[np.ndarray, "input query key"]:
        """The mean attention of some heads between the task's positions; a start token gets the rest."""
        places = self.sample.studied.places
        pattern = self._at(act_name("pattern", layer))[:, list(heads)].mean(axis=1)
        return np.asarray(pattern[:, places][..., places])

    def _at(self, point: str) -> Float[np.ndarray, "input ..."]:
        kept: Activations = {}
        self.sample.studied.logits([*torch_hooks(self._interventions), (point, keep(kept, point))])
        return kept[point].cpu().numpy()
