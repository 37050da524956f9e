"""What a model answers on a task's inputs, whatever kind of model it is."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rasplens.compile import CompiledModel, UndefinedValue, run
from rasplens.compile.interpreter import value_key
from rasplens.compile.rasp import SOp, Value
from rasplens.model import Transformer
from rasplens.tasks.task import Ids, Task

NO_ANSWER = -1
"""The code of an answer that the task does not know, or of none."""

_BATCH = 1_024


def answers(task: Task, model: Any, ids: Ids) -> Int[np.ndarray, "batch loss_pos"]:
    """The model's answers at the loss positions, as indices into `task.outputs`; -1 where it has none.

    Args:
        task: The task.
        model: A RASP program (interpreted), a `CompiledModel`, a `Transformer`, anything that has one
            as its `transformer`, or a torch module from token ids to logits.
        ids: Inputs.

    Raises:
        ValueError: If the model's vocabulary does not fit the task.
    """
    if isinstance(model, SOp):
        return np.stack([_interpreted(task, model, tokens) for tokens in task.sequences(ids)])
    if isinstance(model, CompiledModel):
        return np.concatenate([_compiled(task, model, batch) for batch in _batches(ids)])
    scores = np.concatenate([logits(task, model, batch) for batch in _batches(ids)])
    if scores.shape[-1] != len(task.outputs):
        raise ValueError(
            f"The model has {scores.shape[-1]} logits; task {task.name!r} has {len(task.outputs)} answers."
        )
    return scores.argmax(axis=-1)


def logits(task: Task, model: Any, ids: Ids) -> Float[np.ndarray, "batch loss_pos answer"]:
    """The logits of a transformer at the task's loss positions."""
    transformer = getattr(model, "transformer", model)
    if isinstance(transformer, Transformer):
        return transformer(ids)[:, list(task.loss_positions)]
    import torch

    with torch.no_grad():
        return transformer(torch.as_tensor(ids)).cpu().numpy()[:, list(task.loss_positions)]


def _interpreted(task: Task, program: SOp, tokens: list[Value]) -> Int[np.ndarray, " loss_pos"]:
    try:
        values = run(program, tokens, mask=task.visible)
    except UndefinedValue:
        return np.full(len(task.loss_positions), NO_ANSWER)
    code_of = _answer_codes(task)
    return np.array([code_of.get(value_key(values[p]), NO_ANSWER) for p in task.loss_positions])


def _compiled(task: Task, model: CompiledModel, ids: Ids) -> Int[np.ndarray, "batch loss_pos"]:
    output = model.variables[model.output]
    code_of = _answer_codes(task)
    translation = np.array([code_of.get(value_key(value), NO_ANSWER) for value in (*output.values, None)])
    tokens = model.encode(task.sequences(ids))
    return translation[output.decode(model.outputs(tokens)[:, list(task.loss_positions)])]


def _answer_codes(task: Task) -> dict[tuple, int]:
    return {value_key(value): code for code, value in enumerate(task.outputs)}


def _batches(ids: Ids) -> list[np.ndarray]:
    return np.split(ids, range(_BATCH, len(ids), _BATCH))
