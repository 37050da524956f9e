"""The search: head by head in the order of the forward pass, with the best few ways to say each."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.gathered import Step, made, sufficient
from rasplens.compare.explaining.heads import COUNTED, Group, plans, tried_selectors
from rasplens.compare.explaining.known import Inputs, Known, program_source
from rasplens.compare.explaining.readout import Readout, readout
from rasplens.compare.explaining.sample import Sample

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
        score: What programs are ordered by.
    """

    readout: Readout
    steps: tuple[Step, ...]
    kept: float
    score: float


def programs(sample: Sample, inputs: Inputs, rng: np.random.Generator, until: float = math.inf) -> list[Found]:
    """The programs that a model may implement, the likeliest first; none twice.

    Args:
        sample: The model.
        inputs: The sample, as programs see it.
        rng: Of inputs that stand for one another.
        until: On the clock of `time.monotonic`, when the search ends with what it has.
    """
    found: dict[str, Found] = {}
    for plan in plans(sample, until):
        for steps in _ways(sample, inputs, plan, rng, until):
            known = [*inputs.primitives(), *(one for step in reversed(steps) for one in step.made)]
            if (
                answer := readout(crossed_by(sample, steps), inputs, [*known, *_together(inputs, steps)], steps)
            ) is None:
                continue
            kept = _kept(sample, steps)
            agreement = min(answer.agreement, AGREEMENT_COUNTS) + min(answer.crossed, AGREEMENT_COUNTS)
            score = agreement + min(kept, CUT_COUNTS) - 0.02 * answer.cost
            found.setdefault(program_source(answer.program), Found(answer, tuple(steps), kept, score))
    return sorted(found.values(), key=lambda one: -one.score)


def _ways(
    sample: Sample, inputs: Inputs, plan: Sequence[Group], rng: np.random.Generator, until: float
) -> Iterator[list[Step]]:
    """The best ways to say what all heads of a plan do; none if there is no time for all."""
    ways: list[list[Step]] = [[]]
    last = sample.studied.attending_layers[-1] if sample.studied.attending_layers else 0
    for group in plan:
        if time.monotonic() > until:
            return
        said: dict[tuple[str, ...], list[Step]] = {}  # ways that know the same go on in the same way
        longer = list[list[Step]]()
        for steps in ways:
            known = _known_before(inputs, steps, group)
            texts = tuple(one.text for one in known)
            if texts not in said:
                crossed = crossed_by(sample, [step for step in steps if step.group.layer < group.layer])
                said[texts] = list(_steps(crossed, inputs, group, known, group.layer == last, rng))
            longer += [[*steps, step] for step in said[texts]]
        ways = sorted(longer or ways, key=lambda steps: -sum(map(_worth, steps)))[:BEAM]
    yield from ways


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
