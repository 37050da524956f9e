"""The training of a compression's maps: which starts go on after a trial, and how they go on from there."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rasplens.compile.compiled import CompiledModel
from rasplens.learned.compressor.examples import Examples
from rasplens.learned.compressor.projection import fitted_map, reading_errors
from rasplens.learned.compressor.recipe import CompressionRecipe, OutputLoss
from rasplens.learned.compressor.report import CompressionReport
from rasplens.learned.compressor.steps import CompressionSteps, State, build_steps, first_maps
from rasplens.learned.errors import TrainingError
from rasplens.learned.training.loop import ChunkedRun, RunState


@dataclass(frozen=True, eq=False)
class MapTraining(ChunkedRun[CompressionReport]):
    """The training of maps of some widths and seeds, every heat of each.

    The standing's arrays are the `State` of every heat of every member; its notes say how many steps are done,
    and of every heat (step, loss of the answers, loss of the layers) where finite.

    Attributes:
        compiled: The model.
        members: Widths and seeds.
        recipe: How to train.
        output_loss: The loss of the answers.
        pool: The inputs to draw from.
        size: Steps of a chunk.
    """

    compiled: CompiledModel
    members: Sequence[tuple[int, int]]
    recipe: CompressionRecipe
    output_loss: OutputLoss
    pool: Examples
    size: int
    report = CompressionReport

    @cached_property
    def steps(self) -> CompressionSteps:
        """The compiled programs."""
        return build_steps(self.compiled, self.pool, self.recipe, self.output_loss)

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """The program, its weights, and everything that decides how they are compressed."""
        return {
            "program": self.compiled.output,
            "weights": _digest(self.compiled),
            "recipe": asdict(self.recipe),
            "members": [list(member) for member in self.members],
            "chunk": self.size,
            "pool": len(self.pool.tokens),
        }

    @property
    def seeds(self) -> jax.Array:
        """Of every heat of every member."""
        return jnp.repeat(jnp.array([seed for _, seed in self.members]), len(self.recipe.heats))

    def layout(self) -> State:
        """Shapes alone: the trial is long."""
        width = max(d for d, _ in self.members)
        blank = jnp.zeros((len(self.seeds), self.compiled.transformer.config.d_model, width))
        return jax.eval_shape(self.steps.begin, blank, jnp.ones(len(self.seeds)))

    def first(self) -> RunState[CompressionReport]:
        """Every member's standing after the trial: of each heat, from the start that came furthest.

        Some starts get stuck; and which learning rate goes further in the end cannot be told early.
        """
        recipe, n = self.recipe, len(self.members)
        every = [(width, seed, start) for width, seed in self.members for start in range(recipe.starts)]
        rates = jnp.array([recipe.rate(start) for *_, start in every], jnp.float32)
        state = self.steps.begin(jnp.asarray(self._first_maps(every)), rates)
        step = 0
        if recipe.starts > len(recipe.heats):
            step = recipe.trial
            state, *_ = self.steps.run(state, 0, jnp.array([seed for _, seed, _ in every]), step)
            losses = np.where(np.isfinite(state.loss), state.least, np.inf).reshape(n, recipe.starts)
            best = np.stack([np.array(heat)[losses[:, heat].argmin(axis=1)] for heat in recipe.heats], axis=1)
            chosen = (best + recipe.starts * np.arange(n)[:, None]).ravel()
            state = jax.tree.map(lambda array: array[chosen], state)
        return RunState(state, {"step": step, "histories": [[] for _ in self.seeds]})

    def is_done(self, at: RunState[CompressionReport]) -> bool:
        """Whether all steps are done."""
        return at.notes["step"] >= self.recipe.steps

    def chunk(self, at: RunState[CompressionReport]) -> RunState[CompressionReport]:
        """The standing after another chunk, with a report of each member's heat that leads.

        Raises:
            TrainingError: If every heat of a member diverged.
        """
        before = at.notes["step"]
        step = before + min(self.size, self.recipe.steps - before)
        state, output, layers = self.steps.run(at.arrays, before, self.seeds, step - before)
        losses = np.stack([np.asarray(output).mean(axis=1), np.asarray(layers).mean(axis=1)], axis=1)
        histories = [
            [*history, (step, *own)] if np.isfinite(own).all() else history
            for history, own in zip(at.notes["histories"], losses.tolist(), strict=True)
        ]
        new = self._reports(step, losses[leading_heats(state, len(self.recipe.heats))])
        return RunState(state, {"step": step, "histories": histories}, (*at.reports, *new))

    def _first_maps(self, every: Sequence[tuple[int, int, int]]) -> Float[np.ndarray, "start D d"]:
        """Random ones, the last starts of each member fitted."""
        maps = first_maps(self.compiled.transformer.config.d_model, every)
        if self.recipe.fitted:
            parts = reading_errors(self.compiled, self.pool)
            for projection, (width, _, start) in zip(maps, every, strict=True):
                if start >= self.recipe.starts - self.recipe.fitted:
                    projection[:, :width] = fitted_map(parts, projection[:, :width])
        return maps

    def _reports(self, step: int, losses: Float[np.ndarray, "member 2"]) -> Iterator[CompressionReport]:
        for (width, seed), (output, layers) in zip(self.members, losses.tolist(), strict=True):
            if not np.isfinite([output, layers]).all():
                raise TrainingError(
                    f"The compression to d={width} diverged before step {step} (seed {seed}). Lower the learning "
                    f"rate ({self.recipe.learning_rate:g})."
                )
            yield CompressionReport(width, seed, step, self.recipe.steps, output, layers)


def leading_heats(state: State, heats: int) -> np.ndarray:
    """For each member, which of its heats has had the least loss, of those that have not diverged."""
    least = np.where(np.isfinite(state.loss), state.least, np.inf).reshape(-1, heats)
    return least.argmin(axis=1) + heats * np.arange(len(least))


def _digest(compiled: CompiledModel) -> str:
    """Return a digest of a model's weights."""
    digest = hashlib.sha256()
    for name, array in sorted(compiled.transformer.weights.items()):
        digest.update(f"{name} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]
