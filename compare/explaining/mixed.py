"""A sample on which heads that gather means gather each key's number from another input.

On inputs the numbers of a row depend on each other, so some means never occur. Interventions produce them, and a
table must say what the model answers then.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Int

from rasplens.compare.explaining.gathered import Step
from rasplens.compare.explaining.known import Inputs, Known, before
from rasplens.compare.explaining.sample import Sample
from rasplens.compile.rasp import Aggregate, Encoding, SOp, Value
from rasplens.compile.rasp.batch_interpreter import UNDEFINED, BatchInterpreter, Evaluated
from rasplens.model.interventions import torch_hooks


@dataclass(frozen=True, eq=False)
class Mixed:
    """A sample with the numbers that heads gather from other inputs, another one by key.

    Attributes:
        sample: The model, and its inputs.
        inputs: The sample, as programs see it.
        steps: What the heads do whose numbers are from other inputs: each gathers means.
        known: The variables that were asked for.
    """

    sample: Sample
    inputs: Inputs
    steps: Sequence[Step]
    known: dict[Known, Evaluated] = field(default_factory=dict)

    @cached_property
    def _gathered(self) -> set[str]:
        """The names of the variables that these heads gather."""
        return {one.name for step in self.steps for one in step.made}

    @cached_property
    def _sources(self) -> Int[np.ndarray, "input pos"]:
        """By input and position, the input that values there come from."""
        n_pos = self.inputs.ids.shape[1]
        return np.stack([np.roll(self.sample.sources[0], 1 + place) for place in range(n_pos)], axis=1)

    @cached_property
    def answers(self) -> Int[np.ndarray, "input answer"]:
        """The model's answers."""
        studied, moved = self.sample.studied, []
        visible = np.broadcast_to(self.inputs.task.visible, (len(self.sample), *self.inputs.task.visible.shape))
        for layer in sorted({step.group.layer for step in self.steps}):
            heads = [head for step in self.steps if step.group.layer == layer for head in step.group.heads]
            edges = self.sample.edges_of(heads, visible)
            moved.append(self.sample.values_elsewhere(layer, edges, self._sources))
        return studied.codes(studied.logits(torch_hooks(moved)))

    def values(self, one: Known) -> tuple[Int[np.ndarray, "input pos"], tuple[Value, ...]]:
        """A variable's values, as places in those that it takes on the sample and then those that are new."""
        found, known = self._evaluated(one), {repr(value): place for place, value in enumerate(one.values)}
        places = np.array([known.setdefault(repr(value), len(known)) for value in found.values])
        new = [value for value, place in zip(found.values, places, strict=True) if place >= len(one.values)]
        return places[np.where(found.fails, UNDEFINED, found.codes)], (*one.values, *new)

    def _evaluated(self, one: Known) -> Evaluated:
        if one not in self.known:
            self.known[one] = self._evaluate(one)
        return self.known[one]

    def _evaluate(self, one: Known) -> Evaluated:
        if not any(read.name in self._gathered for read in before(one)):
            return Evaluated(one.expr, one.codes, one.values, one.fails)
        given = [self._evaluated(read) for read in one.needs]
        if one.name in self._gathered and isinstance(one.expr, Aggregate):
            own = [Evaluated(read.expr, read.codes, read.values, read.fails) for read in one.needs]
            keys = self._read(one.expr.sop, own)
            codes, fails = (np.take_along_axis(of, self._sources, axis=0) for of in (keys.codes, keys.fails))
            given += [Evaluated(keys.expr, codes, keys.values, fails)]  # a node that no selector reads
        return self._read(one.expr, given)

    def _read(self, expr: SOp, given: Sequence[Evaluated]) -> Evaluated:
        reader = BatchInterpreter(expr, self.inputs.task.vocab, self.inputs.task.visible, given)
        codes, is_defined = reader.where_defined(self.inputs.ids)
        return Evaluated(expr, codes, reader.values, ~is_defined)


def mixed(sample: Sample, inputs: Inputs, steps: Sequence[Step]) -> Mixed | None:
    """The sample with the numbers that heads gather from other inputs; None if none gathers means."""
    gathering = [step for step in steps if step.made and all(map(_is_mean, step.made))]
    return Mixed(sample, inputs, gathering) if gathering else None


def _is_mean(one: Known) -> bool:
    return isinstance(one.expr, Aggregate) and one.expr.encoding is Encoding.NUMERICAL
