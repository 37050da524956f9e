"""Any RASP program as a supervised task: random inputs, and the program's own values as answers."""

from collections.abc import Sequence

import numpy as np

from rasplens.compile import compile_program, rasp
from rasplens.compile.rasp import SOp, Value
from rasplens.compile.rasp.batch_interpreter import BatchInterpreter
from rasplens.errors import RaspLensError, expect
from rasplens.model import bidirectional_mask, causal_mask
from rasplens.tasks.splits import held_out_by_hash, held_out_inputs
from rasplens.tasks.task import Ids, Task

N_HELD_OUT = 500

LEAST_DEFINED = 0.01
"""The smallest share of random inputs on which a program must have a value to make a task of them."""


def task_from_program(program: SOp, vocab: Sequence[Value], max_len: int, *, causal: bool = False) -> Task:
    """The task of computing a program on sequences of `max_len` tokens, at every position.

    Inputs are uniform among those on which the program has a value; one in five is held out, by a hash of its
    tokens. Where a single value is undefined (None), that is an answer of its own.

    Raises:
        CompileError: If the program's values cannot be told beforehand.
        RaspLensError: If it has a value on hardly any input, or there are too few inputs to hold some out and
            train on others.
    """
    expect(program, SOp, "task_from_program takes an s-op first: task_from_program(program, vocab, max_len)")
    compiled = compile_program(rasp.causal(program), vocab, max_len, causal=causal, partial="allow")
    tokens, visible = compiled.inputs.vocab, compiled.inputs.visible
    tables = BatchInterpreter(program, tokens, visible)

    def target(ids: Ids) -> np.ndarray:
        codes, _ = tables(ids)
        return np.array([task.answer_code(value) for value in tables.values], dtype=int)[codes]

    def draw(rng: np.random.Generator, n: int) -> Ids:
        ids = rng.integers(0, len(tokens), (n, max_len))
        missing = np.flatnonzero(tables(ids)[1])
        if len(missing) > (1 - LEAST_DEFINED) * n > 1:
            raise RaspLensError(
                f"{program.name!r} has a value on {n - len(missing)} of {n} random inputs: too few to draw more. "
                "Build a task whose inputs all have one, with build_task or task_from_inputs."
            )
        while len(missing):
            ids[missing] = rng.integers(0, len(tokens), (len(missing), max_len))
            missing = missing[tables(ids[missing])[1]]
        return ids

    task = Task(
        name=program.name,
        vocab=tokens,
        outputs=(*compiled.variables[compiled.output].values, None),
        positions=tuple(str(i) for i in range(max_len)),
        mask=lambda n_layers: (causal_mask if causal else bidirectional_mask)(n_layers, max_len),
        draw=draw,
        is_held_out=held_out_by_hash,
        target=target,
        loss_positions=tuple(range(max_len)),
        held_out=held_out_inputs(draw, held_out_by_hash, N_HELD_OUT),
        programs={program.name: program},
    )
    return task
