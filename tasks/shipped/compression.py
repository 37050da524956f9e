"""Pass two digits through one position (Farrell et al. 2025, "Order by Scale").

`[d1, d2, SEP, o1, o2]`: the outputs may attend to the separator and to each other but never to the
digits, so the model must pack both into the separator's residual stream and unpack them again.
"""

import itertools
from functools import lru_cache

import numpy as np

from rasplens.compile import programs
from rasplens.tasks.task import Ids, Task

TRAINED_SHARE = 0.8


def compression(n_digits: int = 100) -> Task:
    """The published task: outputs hold a MASK token, and in layer 0 their rows are silent."""
    return _compression("compression", n_digits, separator="SEP", output="MASK")


def compression_notebook(n_digits: int = 100) -> Task:
    """The earlier layout of the training notebook: SEP at the outputs too, and one mask for all layers."""
    return _compression("compression_notebook", n_digits, separator="SEP", output="SEP")


def _compression(name: str, n_digits: int, separator: str, output: str) -> Task:
    has_mask_token = output != separator
    markers = ("MASK", "SEP") if has_mask_token else ("SEP",)
    vocab = (*range(n_digits), *markers)
    suffix = [vocab.index(token) for token in (separator, output, output)]
    trained = _trained_pairs(n_digits)

    def mask(n_layers: int) -> np.ndarray:
        layers = np.repeat(_left_mask()[None], n_layers, axis=0)
        if has_mask_token:
            layers[0, 3:] = False
        return layers

    def inputs(pairs: np.ndarray) -> Ids:
        return np.concatenate([pairs, np.tile(suffix, (len(pairs), 1))], axis=1)

    def draw(rng: np.random.Generator, n: int) -> Ids:
        return inputs(rng.integers(0, n_digits, (n, 2)))

    def is_held_out(ids: Ids) -> np.ndarray:
        return ~trained[ids[:, 0], ids[:, 1]]

    return Task(
        name=name,
        vocab=vocab,
        outputs=vocab,
        positions=("d1", "d2", "SEP", "o1", "o2"),
        mask=mask,
        draw=draw,
        is_held_out=is_held_out,
        target=lambda ids: ids[:, :2],
        loss_positions=(3, 4),
        held_out=inputs(np.argwhere(~trained)),
        programs={"slots": programs.slots(), "read_both": programs.read_both()},
    )


def _left_mask() -> np.ndarray:
    """Strictly to the left, but for d1 that sees itself; the outputs never see the digits."""
    mask = np.tri(5, k=-1, dtype=bool)
    mask[0, 0] = True
    mask[3:, :2] = False
    return mask


@lru_cache
def _trained_pairs(n_digits: int) -> np.ndarray:
    """Which pairs of digits are trained on: boolean `[d1, d2]`.

    The authors' own split, so that figures on the held-out pairs compare with theirs: torch's
    permutation for seed 0 of all pairs in order, its first 80 %.
    """
    import torch

    pairs = np.array(list(itertools.product(range(n_digits), repeat=2)))
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0)).numpy()
    trained = np.zeros((n_digits, n_digits), dtype=bool)
    trained[tuple(pairs[order[: int(TRAINED_SHARE * len(pairs))]].T)] = True
    trained.flags.writeable = False
    return trained
