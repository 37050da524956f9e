"""The two models on the same inputs, position by position and answer by answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.config import CompareConfig
from rasplens.compare.pairing.answered import AnsweredInputs
from rasplens.compare.pairing.inputs import balance
from rasplens.compare.pairing.relevance import Relevance
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compile import CompiledModel
from rasplens.tasks import Accuracy, Task
from rasplens.tasks.completion import generated_accuracy, is_generated
from rasplens.tasks.task import NO_ANSWER, accuracy_of

Side = Literal["reference", "learned", "untrained"]


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
        control: Gives a randomly initialised model of the learned one's shape, the floor; made when first asked.
        config: How much is looked at.
        as_part: Whether the program is held against a part of the model, and what else it reads is left open.
        relevance: Where what the compiled model writes is causally relevant.
    """

    task: Task
    ids: Int[np.ndarray, "input pos"]
    n_drawn: int
    compiled: CompiledModel
    reference: StudiedModel
    learned: StudiedModel
    control: Callable[[], Any]
    config: CompareConfig
    as_part: bool
    relevance: Relevance

    @cached_property
    def untrained(self) -> StudiedModel:
        """The control on these inputs."""
        return replace(self.learned, model=self.control())

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
    def agreed(self) -> Bool[np.ndarray, "input answer"]:
        """Which of the program's answers the learned model gives; where none is asked for, neither gives any."""
        asked = self.reference.answers()
        return np.asarray((self.learned.answers() == asked) & (asked != NO_ANSWER))

    @cached_property
    def agrees(self) -> Bool[np.ndarray, " input"]:
        """On which inputs the learned model gives all of the program's answers, where it has them all."""
        return np.asarray(self.agreed.all(axis=1))

    @cached_property
    def answered(self) -> AnsweredInputs:
        """The inputs with the program's answers."""
        return AnsweredInputs(self.task, self.ids, self.reference.answers(), self.n_drawn)

    @cached_property
    def balance(self) -> Float[np.ndarray, " input"] | None:
        """With which probability an input is asked about, so that rare answers are too; None if all alike."""
        return balance(self.reference.answers())

    def on(self, ids: Int[np.ndarray, "input pos"], n_drawn: int | None = None) -> "Pairing":
        """Return the pairing on other inputs, of which all or the first are as the task draws them."""
        n_drawn = len(ids) if n_drawn is None else n_drawn
        return replace(
            self, ids=ids, n_drawn=n_drawn, reference=self.reference.on(ids), learned=self.learned.on(ids)
        )

    def accuracies(self) -> dict[str, Accuracy]:
        """How often the program, the compiled and the learned model are right on what is drawn.

        But for parts also the untrained one; and, where answers are next tokens, "generated": the learned model
        that reads its own.
        """
        ids = self.ids[: self.n_drawn]
        rights = {
            "program": self.task.right(self.task.answers(self.compiled.program, ids), ids),
            "compiled": self.reference.right(),
            "learned": self.learned.right(),
        }
        if not self.as_part:
            rights["untrained"] = self.untrained.right()
        found = {name: accuracy_of(right[: self.n_drawn]) for name, right in rights.items()}
        if is_generated(self.task) and not self.as_part:
            found["generated"] = generated_accuracy(self.task, self.learned.given, ids)
        return found
