"""The numbers of a weighted program, fitted to what a model answers, also under interventions.

Agreement on answers alone is no evidence of mechanism: numbers that are fitted to it agree much less with the
model under interventions. So most steps look at answers with patched edges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.weighted.questions import PARTS, Asked, asked, check_candidates, questions
from rasplens.compile.weighted import Inputs, Patch, Vote, inputs_of, numbers_of, votes, with_numbers
from rasplens.errors import RaspLensError
from rasplens.learned.intervals import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, check_intervals
from rasplens.learned.training.fit import updated
from rasplens.model import random_streams
from rasplens.model.transformer import AnyModel
from rasplens.tasks import Task, as_task


@dataclass(frozen=True)
class FitConfig:
    """How numbers are fitted.

    Raises:
        RaspLensError: If a number is outside its interval.

    Attributes:
        inputs: Training inputs.
        questions: Of each kind.
        steps: Of the optimiser.
        batch: Questions at a step.
        rate: The highest learning rate.
        clean: Of the steps, the share that looks at unpatched answers.
        held: The names of numbers that stay as they are.
        seed: Of inputs, interventions and batches.
    """

    inputs: int = 3_000
    questions: int = 6_000
    steps: int = 1_500
    batch: int = 256
    rate: float = 0.02
    clean: float = 0.25
    held: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        counts = dict.fromkeys(("inputs", "questions", "steps", "batch"), COUNT)
        check_intervals(self, **counts, rate=POSITIVE, clean=SHARE, seed=NOT_NEGATIVE)


def fit(
    program: Vote,
    model: AnyModel,
    task: Task | str,
    config: FitConfig = FitConfig(),
    progress: Callable[[int, float], None] | None = None,
) -> Vote:
    """A weighted program with the numbers that are nearest to a model's answers, also under interventions.

    Args:
        program: The program, whose numbers are where the fit starts; its candidates are the task's answers.
        model: The model, which has a logit for each of the task's answers.
        task: What it is asked; only training inputs are looked at.
        config: How long.
        progress: Called with the steps that are done, and the loss.

    Raises:
        RaspLensError: If the candidates are not the task's answers, the program has no numbers of a held name, or
            the numbers leave all bounds.
    """
    task = as_task(task)
    check_candidates(program, task)
    if unknown := sorted(set(config.held) - set(numbers_of(program))):
        known = ", ".join(numbers_of(program))
        raise RaspLensError(f"The program has no numbers {unknown[0]!r} to hold; it has {known}.")
    rng = random_streams.rng(config.seed, "weighted fit")
    ids = task.sample(rng, config.inputs)
    studied = as_studied_model(model, task, ids)
    drawn = questions(task, len(ids), config.questions, rng)
    inputs = inputs_of(program, ids, task.vocab, task.visible, task.loss_positions)
    found = [asked(studied, drawn[part]) for part in PARTS]
    numbers = _descended(program, inputs, found, config, rng, progress)
    if not all(np.isfinite(one).all() for one in numbers.values()):
        raise RaspLensError("The fit left all bounds: some number is infinite or NaN. Use a lower rate.")
    return with_numbers(program, {name: np.asarray(one) for name, one in numbers.items()})


def _descended(
    program: Vote,
    inputs: Inputs,
    found: Sequence[Asked],
    config: FitConfig,
    rng: np.random.Generator,
    progress: Callable[[int, float], None] | None,
) -> Mapping[str, Any]:
    """The numbers after the last step down the divergence of the program's answers from the model's."""

    @partial(jax.jit, static_argnames="part")
    def step(numbers: Any, moments: Any, batch: Any, part: Any) -> Any:
        base, source, edges, wanted, scored = batch

        def loss(numbers: Any) -> jax.Array:
            patch = None if part is None else Patch(inputs_at(source), edges, part)
            given = votes(program, inputs_at(base), patch, {**fixed, **numbers}, jnp)
            apart = optax.losses.kl_divergence_with_log_targets(
                jax.nn.log_softmax(given), jax.nn.log_softmax(wanted)
            )
            return (apart * scored).sum() / jnp.maximum(scored.sum(), 1)

        value, gradient = jax.value_and_grad(loss)(numbers)
        return *updated(optimiser, numbers, moments, gradient), value

    def inputs_at(codes: Any) -> Inputs:
        return Inputs(inputs.values, codes, inputs.visible, inputs.rows)

    schedule = optax.cosine_decay_schedule(config.rate, config.steps)
    optimiser = optax.adam(schedule)
    known = {name: jnp.asarray(one) for name, one in numbers_of(program).items()}
    fixed = {name: known.pop(name) for name in config.held}
    numbers: Any = known
    moments = optimiser.init(numbers)
    for done in range(config.steps):
        one = found[done % len(found)]
        rows = rng.integers(0, len(one.patch), config.batch)
        is_clean = rng.random() < config.clean
        base, source = (inputs.of(which[rows]).codes for which in (one.patch.base, one.patch.source))
        wanted = (one.clean if is_clean else one.logits)[rows]
        part = None if is_clean else one.patch.part
        batch = base, source, one.patch.edges[rows], wanted, one.scored[rows]
        numbers, moments, value = step(numbers, moments, batch, part=part)
        if progress is not None:
            progress(done + 1, float(value))
    return numbers
