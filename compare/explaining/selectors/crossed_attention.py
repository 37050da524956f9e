"""Where heads look on the sample crossed: there variables that go together on inputs do not."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rasplens.compare.explaining.crossed import UNMET, Crossed
from rasplens.compare.explaining.heads import Group
from rasplens.compare.explaining.known import Inputs
from rasplens.compare.explaining.selectors.attended import Attended, Matrix
from rasplens.compare.explaining.selectors.grammar import Candidate
from rasplens.compile import rasp
from rasplens.compile.rasp.batch_interpreter import UNDEFINED, BatchInterpreter, Evaluated


@dataclass(frozen=True, eq=False)
class CrossedAttention:
    """The attention of some heads where what earlier heads leave comes from other inputs, at the same position.

    Attributes:
        crossed: The model.
        inputs: The sample, as programs see it.
        group: The heads.
        on_sample: Their attention on the sample.
    """

    crossed: Crossed
    inputs: Inputs
    group: Group
    on_sample: Attended

    def bits(self, one: Candidate) -> float:
        """The divergence of a selector here; on the sample if crossed values of its variables are unknown."""
        read = {of: self.crossed.codes(of) for of in one.reads}
        known = {of: codes for of, codes in read.items() if codes is not None}
        unmet = [(codes == UNMET).any(axis=1) for codes in known.values()]
        asked = ~np.logical_or.reduce([self.crossed.moved, *unmet])
        if len(known) < len(read) or not asked.any():
            return self.on_sample.bits(one.matrix)
        given = [
            Evaluated(of.expr, np.maximum(codes, UNDEFINED), of.values, np.zeros(codes.shape, dtype=bool))
            for of, codes in known.items()
        ]
        return self._attended.of(asked).bits(self._selected(one, given)[asked])

    def _selected(self, one: Candidate, given: Sequence[Evaluated]) -> Matrix:
        selector = eval(one.text, {"rasp": rasp, **{of.name: of.expr for of in one.reads}})
        task = self.inputs.task
        reader = BatchInterpreter(rasp.SelectorWidth(selector), task.vocab, task.visible, given)
        ((_, selected),), _ = reader.selections(self.inputs.ids)
        return np.asarray(selected)

    @cached_property
    def _attended(self) -> Attended:
        on = self.on_sample
        return Attended(
            on.rows, self.crossed.attention(self.group.layer, self.group.heads)[:, on.rows], on.weights
        )
