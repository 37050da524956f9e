"""The search: head by head in the order of the forward pass, with the best few ways to say each."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.gathered import Step, made, sufficient
from rasplens.compare.explaining.heads import Group, plans
from rasplens.compare.explaining.known import Inputs, Known, program_source
from rasplens.compare.explaining.readout import Readout, readout
from rasplens.compare.explaining.sample import Sample
from rasplens.compare.explaining.selectors.tried import COUNTED, tried_selectors

BEAM = 8
"""So many ways to say the heads so far go on."""

CUT_COUNTS = 0.8
"""A selector that reads everything keeps all answers: what is kept above this counts for nothing."""

AGREEMENT_COUNTS = 0.99
"""Agreement above this counts for nothing."""


@dataclass(frozen=True, eq=False)
class Found:
    """A program that may be the model's.

    Attributes:
        readout: The program, and how many of the answers it has.
        steps: What the heads do by it.
        kept: The share of the answers that stay with values along all edges of no step from other inputs.
    """

    readout: Readout
    steps: tuple[Step, ...]
    kept: float

    @property
    def score(self) -> float:
        """What programs are ordered by."""
        said = self.readout
        agreement = min(said.agreement, AGREEMENT_COUNTS) + min(said.crossed, AGREEMENT_COUNTS)
        return agreement + min(self.kept, CUT_COUNTS) - 0.02 * said.cost

    @property
    def is_complete(self) -> bool:
        """Whether it has the answers, reads every step, and what no step reads does not matter."""
        said = self.readout
        has_answers = min(said.agreement, said.crossed) >= AGREEMENT_COUNTS
        return has_answers and not said.unread and self.kept >= AGREEMENT_COUNTS


def programs(sample: Sample, inputs: Inputs, rng: np.random.Generator, until: float = math.inf) -> Iterator[Found]:
    """The programs that a model may implement, none twice; complete ones as they are found.

    First the best way of each plan to say every head, and then the best few. The others come at the end, the
    likeliest first.

    Args:
        sample: The model.
        inputs: The sample, as programs see it.
        rng: Of inputs that stand for one another.
        until: On the clock of `time.monotonic`, when the search ends with what it has.
    """
    met, later = set[str](), list[Found]()
    searches = [_Search(sample, inputs, plan, rng, until) for plan in plans(sample, until)]
    for one in (one for width in (1, BEAM) for search in searches for one in search.found(width)):
        source = program_source(one.readout.program)
        if source in met:
            continue
        met.add(source)
        if one.is_complete:
            yield one
        else:
            later.append(one)
    yield from sorted(later, key=lambda one: -one.score)


@dataclass(frozen=True, eq=False)
class _Search:
    """The ways to say what all heads of a plan do.

    Attributes:
        said: The steps of a group, by the variables that are known before it.
    """

    sample: Sample
    inputs: Inputs
    plan: Sequence[Group]
    rng: np.random.Generator
    until: float
    said: dict[tuple[Group, tuple[str, ...]], list[Step]] = field(default_factory=dict)

    def found(self, width: int) -> Iterator[Found]:
        """A program for each of the best ways; none if there is no time for all heads."""
        for steps in self._ways(width):
            known = [*self.inputs.primitives(), *(one for step in reversed(steps) for one in step.made)]
            known += _together(self.inputs, steps)
            answer = readout(crossed_by(self.sample, steps), self.inputs, known, steps)
            if answer is not None:
                yield Found(answer, tuple(steps), _kept(self.sample, steps))

    def _ways(self, width: int) -> list[list[Step]]:
        ways: list[list[Step]] = [[]]
        for group in self.plan:
            if time.monotonic() > self.until:
                return []
            longer = [[*steps, step] for steps in ways for step in self._steps_after(steps, group)]
            ways = sorted(longer or ways, key=lambda steps: -sum(map(_worth, steps)))[:width]
        return ways

    def _steps_after(self, steps: Sequence[Step], group: Group) -> list[Step]:
        """Ways that know the same go on in the same way."""
        known = _known_before(self.inputs, steps, group)
        asked = group, tuple(one.text for one in known)
        if asked not in self.said:
            crossed = crossed_by(self.sample, [step for step in steps if step.group.layer < group.layer])
            is_last = group.layer == self.sample.studied.attending_layers[-1]
            self.said[asked] = list(_steps(crossed, self.inputs, group, known, is_last, self.rng))
        return self.said[asked]


def _worth(step: Step) -> float:
    return step.kept - 0.01 * step.selector.cost - 0.3 * step.untold - (not step.made)


def _known_before(inputs: Inputs, steps: Sequence[Step], group: Group) -> list[Known]:
    """The variables that a layer can read: the inputs, what earlier layers made, and what follows from that."""
    before = [step for step in steps if step.group.layer < group.layer]
    return [*inputs.primitives(), *(one for step in before for one in step.made), *_together(inputs, before)]


def _together(inputs: Inputs, steps: Sequence[Step]) -> list[Known]:
    """Sums of numbers of keys, and differences: what an MLP makes of several heads."""
    counts = [one for step in steps for one in step.made if one.name.endswith("_width")]
    pairs = [
        inputs.define(f"{one.name}_{word}_{other.name}", f"{one.name} {sign} {other.name}", (one, other), 2.5)
        for one, other in combinations(counts, 2)
        for word, sign in (("plus", "+"), ("minus", "-"))
    ]
    return [one for one in pairs if one is not None]


def crossed_by(sample: Sample, steps: Sequence[Step]) -> Crossed:
    """The sample where what the heads of steps leave comes from other inputs."""
    made = {(step.group.layer, step.group.heads): [one.name for one in step.made] for step in steps}
    return Crossed(sample, made)


def _steps(
    crossed: Crossed,
    inputs: Inputs,
    group: Group,
    known: Sequence[Known],
    is_last: bool,
    rng: np.random.Generator,
) -> Iterator[Step]:
    """The steps that may be what some heads do, the best first."""
    sample = crossed.sample
    for one in tried_selectors(crossed, inputs, group, known, is_last):
        gathers = sufficient(crossed, group, one.selector, known, rng)
        for what in [(), gathers] if gathers and one.counted > COUNTED else [gathers]:
            left = made(sample, inputs, group, one.selector, what)
            # Of heads that count, the number of keys tells the attention on a start token, and no more is to tell.
            told = one.bits if what or np.isnan(one.counted) else 1 - one.counted
            yield Step(group, one.selector, tuple(left), one.kept, told)


def _kept(sample: Sample, steps: Sequence[Step]) -> float:
    """The share of the answers that stay with values along all edges that no step reads from other inputs."""
    visible = sample.studied.task.visible
    others = {}
    for layer in sample.studied.attending_layers:
        edges = sample.edges_of(
            sample.studied.heads_of(layer), np.broadcast_to(visible, (len(sample), *visible.shape))
        )
        for step in steps:
            if step.group.layer == layer:
                edges[:, list(step.group.heads)] &= ~step.selector.matrix[:, None]
        others[layer] = edges
    return sample.kept_with_values(others, sample.sources[:2])
