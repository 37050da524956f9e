"""The two models on the same inputs, position by position and answer by answer."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from rasplens.compare.config import CompareConfig
from rasplens.compare.models.distinguishing import DistinguishingInputs
from rasplens.compare.models.inputs import balance, fitting_inputs, scored_inputs
from rasplens.compare.models.relevance import relevant_positions, relevant_rows
from rasplens.compare.models.studied_model import Head, StudiedModel, as_studied_model
from rasplens.compare.models.vocabulary import GivenVocabulary
from rasplens.compile import CompiledModel
from rasplens.compile.rasp.batch_interpreter import UNDEFINED, BatchInterpreter
from rasplens.errors import RaspLensError
from rasplens.learned import untrained_like
from rasplens.model.hooked import HookedModel
from rasplens.tasks import Accuracy, Task
from rasplens.tasks.completion import generated_accuracy, is_generated
from rasplens.tasks.out_of_distribution import out_of_distribution_inputs
from rasplens.tasks.partial import partial_task
from rasplens.tasks.task import NO_ANSWER, accuracy_of

Side = Literal["reference", "learned", "untrained"]

LEAST_DEFINED = 10
"""With fewer inputs out of distribution on which a program is defined, none are looked at."""


@dataclass(frozen=True, eq=False)
class Pairing:
    """A compiled and a learned model on the same inputs of a task.

    Attributes:
        task: The task.
        ids: The inputs, as the task's ids.
        n_drawn: How many are as the task draws them; behind them stand some with rare answers.
        compiled: The compiled model, for its anatomy.
        reference: The compiled model on these inputs.
        learned: The learned model on these inputs.
        untrained: A randomly initialised model of the learned one's shape: the floor.
        config: How much is looked at.
        as_part: Whether the program is held against a part of the model, and what else it reads is left open.
        fitting: The same models on other inputs, none of them held out: whatever is fitted or chosen is fitted
            and chosen there, and scored here. None for that pairing itself.
        out_of_distribution: The same models on inputs whose tokens are drawn independently: on the task's own,
            variables may go together that nothing but their meaning tells apart.
        distinguishing: By the name of an alternative program, inputs that tell it from the reference.
    """

    task: Task
    ids: Int[np.ndarray, "input pos"]
    n_drawn: int
    compiled: CompiledModel
    reference: StudiedModel
    learned: StudiedModel
    untrained: StudiedModel
    config: CompareConfig
    as_part: bool = False
    fitting: "Pairing | None" = None
    out_of_distribution: "Pairing | None" = None
    distinguishing: Mapping[str, DistinguishingInputs] = field(default_factory=dict)

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return len(self.ids)

    @cached_property
    def codes(self) -> dict[str, Int[np.ndarray, "input pos"]]:
        """By variable, its code at every position (-1: undefined), read from the compiled model."""
        streams = self.reference.cache(self.compiled.written_points)
        places = self.reference.places
        is_undefined = self.compiled.is_undefined(self.ids)
        return self.compiled.decoded({point: stream[:, places] for point, stream in streams.items()}, is_undefined)

    @cached_property
    def relevant_rows(self) -> dict[Head, list[int]]:
        """By head of the compiled model, the positions at which what it writes is causally relevant."""
        if self.fitting is not None:
            return self.fitting.relevant_rows
        return relevant_rows(self.reference, self.config.relevance_inputs)

    def relevant_positions(self, variable: str) -> list[int]:
        """The positions at which a variable of the compiled model is causally relevant."""
        if self.fitting is not None:
            return self.fitting.relevant_positions(variable)
        if variable not in self._relevant:
            one, few = self.compiled.variables[variable], self.config.relevance_inputs
            self._relevant[variable] = relevant_positions(self.reference, one, few)
        return self._relevant[variable]

    @cached_property
    def _relevant(self) -> dict[str, list[int]]:
        return {}

    @cached_property
    def agrees(self) -> Bool[np.ndarray, " input"]:
        """On which inputs the learned model gives all of the program's answers, where it has them all."""
        asked = self.reference.answers()
        return np.asarray(((self.learned.answers() == asked) & (asked != NO_ANSWER)).all(axis=1))

    @cached_property
    def balance(self) -> Float[np.ndarray, " input"] | None:
        """With which probability an input is asked about, so that rare answers are too; None if all alike."""
        return balance(self.reference.answers())

    def on(self, ids: Int[np.ndarray, "input pos"], n_drawn: int | None = None) -> "Pairing":
        """The same models on other inputs, of which all or the first are as the task draws them."""
        sides = {side: getattr(self, side).on(ids) for side in ("reference", "learned", "untrained")}
        return replace(self, ids=ids, n_drawn=len(ids) if n_drawn is None else n_drawn, **sides)

    def accuracies(self) -> dict[str, Accuracy]:
        """How often the program, the compiled, the learned and the untrained model are right on what is drawn.

        Where answers are next tokens, "generated" is how often the learned model is when it reads its own.
        """
        ids = self.ids[: self.n_drawn]
        rights = {
            "program": self.task.right(self.task.answers(self.compiled.program, ids), ids),
            "compiled": self.reference.right(),
            "learned": self.learned.right(),
            "untrained": self.untrained.right(),
        }
        found = {name: accuracy_of(right[: self.n_drawn]) for name, right in rights.items()}
        if is_generated(self.task):
            found["generated"] = generated_accuracy(self.task, self.learned.given, ids)
        return found


def pair(
    compiled: CompiledModel,
    learned: Any,
    task: Task,
    config: CompareConfig,
    seed: int,
    vocabulary: GivenVocabulary | None = None,
    as_part: bool = False,
    distinguishing: Mapping[str, DistinguishingInputs] | None = None,
) -> Pairing:
    """A compiled and a learned model on the same held-out inputs of a task, chosen by the seed.

    Args:
        compiled: The reference.
        learned: A `LearnedModel`, `Transformer`, `HookedModel`, `TransformerBridge` or another `CompiledModel`.
        task: What both are asked.
        config: How much to look at; of inputs at most the number that the task holds out, and some with rare
            answers besides.
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
    ids = inputs.ids
    studied = as_studied_model(learned, task, ids, vocabulary)
    if (nans := np.isnan(studied.clean_logits).any(axis=(1, 2))).any():
        raise RaspLensError(
            f"The learned model's logits are NaN on {nans.sum()} of {len(ids)} inputs; it cannot be compared."
        )
    # A seed of its own: with that of the caller, the control could be the learned model's own initialisation.
    control = int(np.random.SeedSequence([seed, *b"untrained"]).generate_state(1)[0])
    pairing = Pairing(
        task=task,
        ids=ids,
        n_drawn=inputs.n_drawn,
        compiled=compiled,
        reference=as_studied_model(compiled, task, ids),
        learned=studied,
        untrained=replace(studied, model=untrained_control(studied.model, control)),
        config=config,
        as_part=as_part,
        distinguishing=distinguishing or {},
    )
    fitting = fitting_inputs(task, compiled.program, config.n_fitting, rng)
    others = out_of_distribution_inputs(task, rng, config.n_fitting)
    return replace(
        pairing,
        fitting=pairing.on(fitting.ids, fitting.n_drawn),
        out_of_distribution=pairing.on(_defined(compiled, task, others)),
    )


def _defined(compiled: CompiledModel, task: Task, ids: np.ndarray) -> np.ndarray:
    """The inputs on which the program is defined where it answers, or held-out ones if there are hardly any."""
    codes, is_known = BatchInterpreter(compiled.program, task.vocab, task.visible).where_defined(ids)
    answers_fail = ~is_known[:, list(task.loss_positions)].all(axis=1)
    kept = ids[~answers_fail & (codes != UNDEFINED).any(axis=1)]
    return kept if len(kept) >= LEAST_DEFINED else task.held_out[: len(ids)]


def untrained_control(model: Any, seed: int) -> Any:
    """An untrained model of the same shape.

    It is initialised anew, or, for a model that is not ours, has normal entries with the mean and the spread of
    each of its parameters: shuffled entries of a sparse one, such as a compiled model's, might do nothing at all.
    """
    if isinstance(model, HookedModel):
        return HookedModel(untrained_like(model.cfg, model.to_transformer().mask, seed)).to(str(model.mask.device))
    twin, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed % 2**63)
    with torch.no_grad():
        for parameter in twin.parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.copy_(parameter.mean() + parameter.std(correction=0) * drawn.to(parameter.device))
    return twin
