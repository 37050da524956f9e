"""What a model answers on a task's inputs, whatever kind of model it is."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from rasplens.compile import CompiledModel, UndefinedValue, run
from rasplens.compile.rasp import SOp, Value
from rasplens.model import transformer_of
from rasplens.tasks.task import NO_ANSWER, Ids, Task

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
    transformer = transformer_of(model)
    if transformer is not None:
        return transformer(ids)[:, list(task.loss_positions)]
    import torch

    with torch.no_grad():
        return model(torch.as_tensor(ids)).cpu().numpy()[:, list(task.loss_positions)]


def _interpreted(task: Task, program: SOp, tokens: list[Value]) -> Int[np.ndarray, " loss_pos"]:
    try:
        values = run(program, tokens, mask=task.visible)
    except UndefinedValue:
        return np.full(len(task.loss_positions), NO_ANSWER)
    return np.array([task.answer_code(values[p]) for p in task.loss_positions])


def _compiled(task: Task, model: CompiledModel, ids: Ids) -> Int[np.ndarray, "batch loss_pos"]:
    output = model.variables[model.output]
    tokens = model.encode(task.sequences(ids))
    return answer_codes(task, model)[output.decode(model.outputs(tokens)[:, list(task.loss_positions)])]


def answer_codes(task: Task, model: CompiledModel) -> Int[np.ndarray, " code"]:
    """The task's answer for every code of a compiled model's result, the last for undefined."""
    values = (*model.variables[model.output].values, None)
    return np.array([task.answer_code(value) for value in values])


def _batches(ids: Ids) -> list[np.ndarray]:
    return np.split(ids, range(_BATCH, len(ids), _BATCH))
