"""Sort a list of fixed length (Kissane, "Interpreting a toy model trained to sort lists").

`[BOS, a1 … an, MID, b1 … bn]`: after MID, every position predicts the next element of the sorted list.
"""

import numpy as np

from rasplens.compile import programs
from rasplens.model import causal_mask
from rasplens.tasks.splits import held_out_by_hash, held_out_inputs
from rasplens.tasks.task import Ids, Task

N_HELD_OUT = 2_000


def sort(n_values: int = 50, length: int = 10) -> Task:
    """The task of sorting `length` integers from 0 to `n_values` - 1, next-token loss on the output.

    One list in five is held out, by a hash of the list.
    """
    bos, mid = n_values, n_values + 1
    n_ctx = 2 * length + 2

    def draw(rng: np.random.Generator, n: int) -> Ids:
        lists = rng.integers(0, n_values, (n, length))
        column = np.ones((n, 1), dtype=lists.dtype)
        return np.concatenate([bos * column, lists, mid * column, np.sort(lists, axis=1)], axis=1)

    def is_held_out(ids: Ids) -> np.ndarray:
        return held_out_by_hash(ids[:, 1 : length + 1])

    def target(ids: Ids) -> np.ndarray:
        return ids[:, length + 2 :]

    return Task(
        name="sort",
        vocab=(*range(n_values), "BOS", "MID"),
        outputs=tuple(range(n_values)),
        positions=(
            "BOS",
            *(f"a{i + 1}" for i in range(length)),
            "MID",
            *(f"b{i + 1}" for i in range(length)),
        ),
        mask=lambda n_layers: causal_mask(n_layers, n_ctx),
        draw=draw,
        is_held_out=is_held_out,
        target=target,
        loss_positions=tuple(range(length + 1, n_ctx - 1)),
        held_out=held_out_inputs(draw, is_held_out, N_HELD_OUT),
        programs={"successor": programs.successor(length), "next_larger": programs.next_larger()},
    )
