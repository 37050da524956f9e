"""A program and a model on all inputs that they are asked, and the variables that are looked for in it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np

from rasplens.compare.config import CompareConfig
from rasplens.compare.pairing.control import untrained_control
from rasplens.compare.pairing.distinguishing import DistinguishingInputs
from rasplens.compare.pairing.inputs import all_inputs, defined_inputs, fitting_inputs, scored_inputs
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.pairing.relevance import Relevance
from rasplens.compare.pairing.variables import determines, own_variables, varies
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compare.subject.vocabulary import GivenVocabulary
from rasplens.compile import CompiledModel, Variable
from rasplens.errors import RaspLensError
from rasplens.model.hook_points import EMBEDDED
from rasplens.model.transformer import AnyModel
from rasplens.tasks import Task
from rasplens.tasks.out_of_distribution import out_of_distribution_inputs
from rasplens.tasks.partial import partial_task

Scope = Literal["whole", "part", "large part"]
"""A program is compared with all of a model, with a part of it, or with a part of a large one."""

OFTEN = 5
"""Mean count of each token that is needed to tell whether a variable follows from the token."""


MOST_PARAMETERS = 1_000_000
"""Larger models take too long to be run on all inputs, or pairs of them."""

MOST_INPUTS = 65_536
"""Of more inputs, answers are sampled."""


@dataclass(frozen=True, eq=False)
class Study:
    """A program and a model, on all inputs on which they are looked at.

    Attributes:
        scored: On held-out inputs, which everything is scored on.
        fitting: On others, none of them held out: whatever is fitted or chosen is fitted and chosen there.
        off_distribution: On inputs whose tokens are drawn independently: on the task's own, variables may go
            together that nothing but their meaning tells apart.
        distinguishing: By the name of an alternative program, inputs that tell it from the reference.
    """

    scored: Pairing
    fitting: Pairing
    off_distribution: Pairing
    distinguishing: Mapping[str, DistinguishingInputs]

    @property
    def task(self) -> Task:
        """The task that the program and the model are asked."""
        return self.scored.task

    @property
    def compiled(self) -> CompiledModel:
        """The compiled program."""
        return self.scored.compiled

    @property
    def learned(self) -> StudiedModel:
        """The model under study, on the inputs to score on."""
        return self.scored.learned

    @property
    def config(self) -> CompareConfig:
        """How much is looked at."""
        return self.scored.config

    @cached_property
    def whole(self) -> Pairing | None:
        """The models on all inputs that the task has; None where these are too many, or the model is too large."""
        most = min(self.config.enumerated, MOST_INPUTS)
        ids = all_inputs(self.task, most) if most and not self.is_large else None
        return None if ids is None else self.scored.on(ids)

    @cached_property
    def is_large(self) -> bool:
        """Whether the model is too large to be run on all inputs, or to be searched for variables of a part."""
        return sum(weights.numel() for weights in self.learned.model.parameters()) > MOST_PARAMETERS

    @property
    def scope(self) -> Scope:
        """What of the model the program is compared with."""
        if not self.scored.as_part:
            return "whole"
        return "large part" if self.is_large else "part"

    @cached_property
    def own_variables(self) -> dict[str, Variable]:
        """The variables with directions of their own, by name."""
        return own_variables(self.compiled)

    @cached_property
    def variables(self) -> dict[str, list[int]]:
        """Those between input and output, by name, each with the positions where it can be interchanged.

        Taking the input, what the embedding says of it, or the result from elsewhere says nothing about how the
        one becomes the other.
        """
        return {
            name: self.interchangeable_positions(name)
            for name, variable in self.own_variables.items()
            if variable.written_at != EMBEDDED and name != self.compiled.output
        }

    def interchangeable_positions(self, variable: str) -> list[int]:
        """The positions at which a variable is causally relevant, varies, and can be set without its token."""
        return [at for at in self._varying(variable) if not self._is_fixed_by_the_token(variable, at)]

    def why_not_interchangeable(self, variable: str) -> str:
        """Why a variable is not interchanged."""
        if variable not in self.own_variables:
            return "it has no directions of its own in the compiled model: it follows from other variables"
        if not self.scored.relevance.positions(variable):
            return "it reaches no answer of the task"
        if not self._varying(variable):
            return "it is the same on all inputs wherever it reaches an answer"
        if not self.interchangeable_positions(variable):
            return "wherever it varies, it and the token there determine each other"
        return "too few pairs of inputs pose a question that the task could ask"

    def _varying(self, variable: str) -> list[int]:
        codes = self.scored.codes[variable]
        return [at for at in self.scored.relevance.positions(variable) if varies(codes[:, at])]

    def _is_fixed_by_the_token(self, variable: str, position: int) -> bool:
        """Whether variable and token at a position determine each other, as "the first token" does at position 0.

        Then no input has one without the other, and neither can be interchanged alone.
        """
        parts = self.fitting, self.off_distribution
        tokens = np.concatenate([part.ids[:, position] for part in parts])
        codes = np.concatenate([part.codes[variable][:, position] for part in parts])
        often = len(np.unique(tokens)) * OFTEN <= len(tokens)
        return often and determines(tokens, codes) and determines(codes, tokens)


def study_of(
    compiled: CompiledModel,
    learned: AnyModel,
    task: Task,
    config: CompareConfig,
    seed: int,
    vocabulary: GivenVocabulary | None = None,
    as_part: bool = False,
    distinguishing: Mapping[str, DistinguishingInputs] | None = None,
) -> Study:
    """A compiled and a learned model on the same inputs of a task, chosen by the seed.

    Args:
        compiled: The reference.
        learned: A `LearnedModel`, `Transformer`, `HookedModel`, `TransformerBridge` or another `CompiledModel`.
        task: What both are asked.
        config: How much to look at; of held-out inputs at most the number that the task holds out, and some with
            rare answers besides.
        seed: Of the choice, and of the untrained control.
        vocabulary: The learned model's vocabulary for the task, if it is not the task's own.
        as_part: Whether only the answers that the program has are asked for, and nothing is said of what else the
            model reads for them.
        distinguishing: By the name of an alternative program, inputs that tell it from the reference.

    Raises:
        RaspLensError: If the learned side is no model or does not fit the task, or the inputs are too few.
    """
    task = partial_task(task, compiled.program) if as_part else task
    rng = np.random.default_rng(seed)
    inputs = scored_inputs(task, compiled.program, config.n_inputs, rng)
    studied = as_studied_model(learned, task, inputs.ids, vocabulary)
    if (nans := np.isnan(studied.clean_logits).any(axis=(1, 2))).any():
        raise RaspLensError(
            f"The learned model's logits are NaN on {nans.sum()} of {len(nans)} inputs; it cannot be compared."
        )
    # A seed of its own: with that of the caller, the control could be the learned model's own initialisation.
    control_seed = int(np.random.SeedSequence([seed, *b"untrained"]).generate_state(1)[0])
    control = cache(lambda: untrained_control(studied.model, control_seed))
    reference = as_studied_model(compiled, task, inputs.ids)
    fitting = fitting_inputs(task, compiled.program, config.n_fitting, rng)
    others = out_of_distribution_inputs(task, rng, config.n_fitting)
    relevance = Relevance(compiled.variables, reference.on(fitting.ids), config.relevance_inputs)
    scored = Pairing(
        task, inputs.ids, inputs.n_drawn, compiled, reference, studied, control, config, as_part, relevance
    )
    return Study(
        scored=scored,
        fitting=replace(scored.on(fitting.ids, fitting.n_drawn), reference=relevance.reference),
        off_distribution=scored.on(defined_inputs(compiled, task, others)),
        distinguishing=distinguishing or {},
    )
