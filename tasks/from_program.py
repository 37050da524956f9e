"""Any RASP program as a supervised task: random inputs, and the interpreter's values as answers."""

from collections.abc import Sequence

import numpy as np

from rasplens.compile import compile_program, rasp, run
from rasplens.compile.rasp import SOp, Value
from rasplens.model import bidirectional_mask, causal_mask
from rasplens.tasks.splits import held_out_by_hash, held_out_inputs
from rasplens.tasks.task import Ids, Task

N_HELD_OUT = 500


def task_from_program(program: SOp, vocab: Sequence[Value], max_len: int, *, causal: bool = False) -> Task:
    """The task of computing a program on sequences of `max_len` tokens, at every position.

    Inputs are uniform; one in five is held out, by a hash of its tokens. Where the program is undefined
    (None), that is an answer of its own.

    Raises:
        CompileError: If the program's values cannot be told beforehand.
        UndefinedValue: When an input is drawn on which the program has no value.
        ValueError: If there are too few inputs to hold some out and train on others.
    """
    compiled = compile_program(rasp.causal(program), vocab, max_len, causal=causal)
    tokens = compiled.inputs.vocab
    output = compiled.variables[compiled.output]
    undefined = len(output.values)
    known: dict[tuple[int, ...], list[int]] = {}

    def answer(row: tuple[int, ...]) -> list[int]:
        if row not in known:
            values = run(program, [tokens[i] for i in row], causal=causal)
            known[row] = [undefined if value is None else output.code(value) for value in values]
        return known[row]

    def draw(rng: np.random.Generator, n: int) -> Ids:
        return rng.integers(0, len(tokens), (n, max_len))

    return Task(
        name=program.name,
        vocab=tokens,
        outputs=(*output.values, None),
        positions=tuple(str(i) for i in range(max_len)),
        mask=lambda n_layers: (causal_mask if causal else bidirectional_mask)(n_layers, max_len),
        draw=draw,
        is_held_out=held_out_by_hash,
        target=lambda ids: np.array([answer(tuple(row)) for row in ids.tolist()]),
        loss_positions=tuple(range(max_len)),
        held_out=held_out_inputs(draw, held_out_by_hash, N_HELD_OUT),
        programs={program.name: program},
    )
