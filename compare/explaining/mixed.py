"""A sample on which heads of the last layer gather from each key what it has on another input.

On a sample, the keys of a row go together: some means never come about, and interventions bring them about. So
what follows from those is told here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int

from rasplens.compare.explaining.gathered import Step
from rasplens.compare.explaining.known import Inputs, Known, before
from rasplens.compare.explaining.sample import Sample
from rasplens.compile.rasp import Aggregate, SOp, Value
from rasplens.compile.rasp.batch_interpreter import UNDEFINED, BatchInterpreter, Evaluated
from rasplens.model.interventions import torch_hooks


@dataclass(frozen=True, eq=False)
class Mixed:
    """A sample with the values that heads of the last layer gather from other inputs, another one by key.

    Attributes:
        sample: The model, and its inputs.
        inputs: The sample, as programs see it.
        steps: What the heads do whose values are from other inputs.
    """

    sample: Sample
    inputs: Inputs
    steps: Sequence[Step]

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
        studied = self.sample.studied
        edges = [self.sample.edges_of(step.group.heads, step.selector.matrix) for step in self.steps]
        layer = studied.attending_layers[-1]
        moved = self.sample.values_elsewhere(layer, np.logical_or.reduce(edges), self._sources)
        return studied.codes(studied.logits(torch_hooks([moved])))

    def values(self, one: Known) -> tuple[Int[np.ndarray, "input pos"], tuple[Value, ...]]:
        """A variable's values, as places in those that it takes on the sample and then those that are new."""
        found, known = self._evaluated(one), {repr(value): place for place, value in enumerate(one.values)}
        places = np.array([known.setdefault(repr(value), len(known)) for value in found.values])
        new = [value for value, place in zip(found.values, places, strict=True) if place >= len(one.values)]
        return places[np.where(found.fails, UNDEFINED, found.codes)], (*one.values, *new)

    def _evaluated(self, one: Known) -> Evaluated:
        if not any(read.name in self._gathered for read in before(one)):
            return Evaluated(one.expr, one.codes, one.values, one.fails)
        given = [self._evaluated(read) for read in one.needs]
        if one.name in self._gathered and isinstance(one.expr, Aggregate):
            keys = self._read(one.expr.sop, given)
            codes, fails = (np.take_along_axis(of, self._sources, axis=0) for of in (keys.codes, keys.fails))
            given += [Evaluated(keys.expr, codes, keys.values, fails)]
        return self._read(one.expr, given)

    def _read(self, expr: SOp, given: Sequence[Evaluated]) -> Evaluated:
        reader = BatchInterpreter(expr, self.inputs.task.vocab, self.inputs.task.visible, given)
        codes, is_defined = reader.where_defined(self.inputs.ids)
        return Evaluated(expr, codes, reader.values, ~is_defined)


def mixed(sample: Sample, inputs: Inputs, steps: Sequence[Step]) -> Mixed | None:
    """The sample with what heads of the last layer gather from other inputs; None if none gathers a variable."""
    last = sample.studied.attending_layers[-1:]
    gathering = [
        step
        for step in steps
        if step.group.layer in last and step.made and all(isinstance(one.expr, Aggregate) for one in step.made)
    ]
    return Mixed(sample, inputs, gathering) if gathering else None
