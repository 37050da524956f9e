"""The two models on the same inputs, position by position and answer by answer."""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from rasplens.compare.subject import Subject
from rasplens.compile import CompiledModel
from rasplens.compile.compiled import nearest
from rasplens.learned import LearnedModel, untrained_like
from rasplens.learned.checkpoint import check_fits
from rasplens.model import Transformer
from rasplens.model.hooked import HookedModel
from rasplens.tasks import Task
from rasplens.tasks.answers import answer_codes

MIN_INPUTS = 10
"""The fewest inputs to compare on: three of them are left to score probes on."""

_TRACE_BATCH = 256


@dataclass(frozen=True, eq=False)
class Pairing:
    """A compiled and a learned model on the same inputs of a task.

    Attributes:
        task: The task.
        ids: The inputs, as the task's ids.
        compiled: The compiled model, for its anatomy.
        reference: The compiled model as a subject.
        learned: The learned model as a subject.
        untrained: A randomly initialised model of the learned one's shape: the floor.
        codes: By variable, its code at every position (-1: undefined), read from the compiled model.
    """

    task: Task
    ids: Int[np.ndarray, "input pos"]
    compiled: CompiledModel
    reference: Subject
    learned: Subject
    untrained: Subject
    codes: dict[str, Int[np.ndarray, "input pos"]]


def pair(compiled: CompiledModel, learned: Any, task: Task, n_inputs: int, seed: int) -> Pairing:
    """Both models on `n_inputs` held-out inputs of the task, chosen by the seed.

    Args:
        compiled: The reference.
        learned: A `LearnedModel`, `Transformer`, `HookedModel` or another `CompiledModel`.
        task: What both are asked.
        n_inputs: How many inputs; at most the number that the task holds out.
        seed: Of the choice, and of the untrained control.

    Raises:
        ValueError: If a model does not fit the task, or the inputs are too few.
        TypeError: If the learned side is no model.
    """
    if n_inputs < MIN_INPUTS:
        raise ValueError(f"A comparison needs at least {MIN_INPUTS} inputs for its probes; got {n_inputs}.")
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(task.held_out))[:n_inputs]
    ids = task.held_out[rows]
    subject = as_subject(learned, task, ids)
    # A seed of its own: with that of the caller, the control could be the learned model's own initialisation.
    control = int(np.random.SeedSequence([seed, *b"untrained"]).generate_state(1)[0])
    floor = HookedModel(untrained_like(subject.model.cfg, subject.model.to_transformer().mask, control))
    return Pairing(
        task=task,
        ids=ids,
        compiled=compiled,
        reference=as_subject(compiled, task, ids),
        learned=subject,
        untrained=replace(subject, model=floor),
        codes=variable_codes(compiled, task, ids),
    )


def as_subject(model: Any, task: Task, ids: Int[np.ndarray, "input pos"]) -> Subject:
    """A model on some inputs of a task.

    Raises:
        ValueError: If the model does not fit the task.
        TypeError: If it is no model.
    """
    if isinstance(model, CompiledModel):
        return _compiled_subject(model, task, ids)
    if isinstance(model, LearnedModel):
        model = model.transformer
    if isinstance(model, Transformer):
        model = HookedModel(model)
    if not isinstance(model, HookedModel):
        raise TypeError(
            f"The learned side must be a LearnedModel, Transformer, HookedModel or CompiledModel; got {model!r}."
        )
    check_fits(model.cfg, task, "The learned model")
    return Subject(
        model=model,
        heads=tuple(itertools.product(range(model.cfg.n_layers), range(model.cfg.n_heads))),
        tokens=torch.as_tensor(ids),
        targets=task.target(ids),
        offset=0,
        answer_positions=task.loss_positions,
        read_answers=lambda logits: logits.argmax(axis=-1),
    )


def _compiled_subject(compiled: CompiledModel, task: Task, ids: np.ndarray) -> Subject:
    if compiled.inputs.max_len < task.n_ctx:
        raise ValueError(
            f"The reference was compiled for max_len={compiled.inputs.max_len}; inputs of {task.name!r} have "
            f"{task.n_ctx} tokens. Compile it with max_len={task.n_ctx}."
        )
    output = compiled.variables[compiled.output]
    translation = answer_codes(task, compiled)
    return Subject(
        model=HookedModel(compiled.transformer),
        heads=tuple(compiled.heads),
        tokens=torch.as_tensor(compiled.encode(task.sequences(ids))),
        targets=task.target(ids),
        offset=compiled.offset,
        answer_positions=task.loss_positions,
        read_answers=lambda logits: translation[nearest(output, logits)[0]],
    )


def variable_codes(compiled: CompiledModel, task: Task, ids: np.ndarray) -> dict[str, np.ndarray]:
    """The codes of every variable of a compiled model on inputs of a task."""
    own = compiled.encode(task.sequences(ids))[:, compiled.offset :]
    parts = [compiled.trace(batch) for batch in np.split(own, range(_TRACE_BATCH, len(own), _TRACE_BATCH))]
    return {name: np.concatenate([part[name] for part in parts]) for name in compiled.variables}
