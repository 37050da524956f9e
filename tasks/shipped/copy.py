"""Continue a block of letters that repeats itself.

A random block is repeated to the full length; every position from the end of the first block on
predicts the next letter. Letters of a block may repeat, so that the letter before does not always say
which comes next. Source: "Attempting to reverse engineer one-layer transformers".
"""

import numpy as np

from rasplens.compile import programs
from rasplens.model import causal_mask
from rasplens.tasks.splits import held_out_by_hash, held_out_inputs
from rasplens.tasks.task import Ids, Task

N_HELD_OUT = 2_000


def copy(n_letters: int = 26, block: int = 6, length: int = 24) -> Task:
    """The task of continuing a block of `block` letters to `length` letters.

    One block in five is held out, by a hash of the block.
    """

    def draw(rng: np.random.Generator, n: int) -> Ids:
        blocks = rng.integers(0, n_letters, (n, block))
        return np.tile(blocks, -(-length // block))[:, :length]

    def is_held_out(ids: Ids) -> np.ndarray:
        return held_out_by_hash(ids[:, :block])

    def target(ids: Ids) -> np.ndarray:
        return ids[:, block:]

    letters = tuple(chr(ord("A") + i) for i in range(n_letters))
    return Task(
        name="copy",
        vocab=letters,
        outputs=letters,
        positions=tuple(str(i) for i in range(length)),
        mask=lambda n_layers: causal_mask(n_layers, length),
        draw=draw,
        is_held_out=is_held_out,
        target=target,
        loss_positions=tuple(range(block - 1, length - 1)),
        held_out=held_out_inputs(draw, is_held_out, N_HELD_OUT),
        programs={"offset": programs.offset(block), "induction": programs.induction()},
    )
