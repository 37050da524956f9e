"""Say what followed a letter before: a block of different letters, then some of them in any order.

Each letter that is asked about stands at an offset of its own from its first occurrence, so no rule by position
gives the answers. Two layers do: a head that moves every letter one position on, and one that looks for it.
Source: Olsson et al. 2022, "In-context Learning and Induction Heads".
"""

import numpy as np

from rasplens.compile import programs
from rasplens.errors import RaspLensError
from rasplens.model import causal_mask
from rasplens.tasks.splits import held_out_by_hash, held_out_inputs
from rasplens.tasks.task import Ids, Task

N_HELD_OUT = 2_000


def induction(n_letters: int = 12, block: int = 8, asked: int = 4) -> Task:
    """The task of saying what followed each of `asked` letters in a block of `block` different ones.

    The last letter of the block is never asked about: nothing follows it. One input in five is held out, by hash.

    Raises:
        RaspLensError: If there are fewer letters than a block takes, or fewer in the block than are asked about.
    """
    if not asked < block <= n_letters <= 26:
        raise RaspLensError(
            "The induction task needs asked < block <= n_letters <= 26; got "
            f"asked={asked}, block={block}, n_letters={n_letters}."
        )
    length = block + asked

    def draw(rng: np.random.Generator, n: int) -> Ids:
        letters = rng.permuted(np.tile(np.arange(n_letters), (n, 1)), axis=1)[:, :block]
        places = rng.permuted(np.tile(np.arange(block - 1), (n, 1)), axis=1)[:, :asked]
        return np.concatenate([letters, np.take_along_axis(letters, places, axis=1)], axis=1)

    def target(ids: Ids) -> np.ndarray:
        places = (ids[:, None, :block] == ids[:, block:, None]).argmax(axis=2)
        return np.take_along_axis(ids, np.minimum(places + 1, block - 1), axis=1)

    letters = tuple(chr(ord("A") + i) for i in range(n_letters))
    return Task(
        name="induction",
        vocab=letters,
        outputs=letters,
        positions=tuple(str(i) for i in range(length)),
        mask=lambda n_layers: causal_mask(n_layers, length),
        draw=draw,
        is_held_out=held_out_by_hash,
        target=target,
        loss_positions=tuple(range(block, length)),
        held_out=held_out_inputs(draw, held_out_by_hash, N_HELD_OUT),
        programs={"induction": programs.induction()},
    )
