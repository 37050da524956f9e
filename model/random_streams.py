"""Independent random numbers from one seed: a stream of its own for everything that is drawn.

What two parts draw from one seed must not depend on each other, so each has a number of its own, which goes into
the generator beside the seed. The numbers are part of every published result: one that is given is never changed,
and never given again.

What is the same whatever the seed, such as which inputs a task holds out, is drawn from `default_rng(0)`.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from rasplens.errors import RaspLensError

STREAMS: Mapping[str, int] = MappingProxyType(
    {
        "initial weights": 0,  # the generator of the bare seed
        "training inputs": 1,
        "subspace decodability": 2,
        "attention heads": 3,
        "ablation profiles": 4,
        "disguise": 5,
        "interchange pairs": 6,
        "interchange controls": 7,
        "distributed alignment": 8,
        "distinguishing inputs": 9,
        "out-of-distribution inputs": 10,
        "axis intervals": 11,
        "subspace similarity": 12,
        "distillation": 13,
        "labelled pairs": 14,
        "ablation edge controls": 15,
        "separability": 16,
        "resample ablation": 17,
        "permutation test": 18,
        "edge patching": 19,
        "edge patching answers": 20,
        "claims": 21,
        "behaviour trials": 22,
        "joint interchange": 23,
        "experiment inputs": 24,
        "experiment pairs": 25,
        "SIIT interventions": 26,
        "implementation accuracy": 27,
        "SIIT variables": 28,
        "circuit discovery": 29,
        "circuit discovery controls": 30,
        "circuit tests": 31,
        "SIIT sites": 32,
        "joint interchange sites": 33,
        "intervals of areas": 34,
        "joint interchange told": 35,
        "orders of ties": 36,
        "heads that attend alike": 37,
        "unmapped heads": 38,
        "explain": 39,
        "twins": 40,
        "random programs": 41,
        "compression inputs": 42,
        "weighted fit": 43,
        "weighted statement": 44,
        "effects": 45,
        "effect intervals": 46,
        "planting": 47,
        "host's text": 48,
    }
)
"""The number of each stream, by what is drawn from it."""


FIRST_MAPS = 20
"""The first number in the key of a compression's first map; `rng` has no keys of three numbers."""


def rng(seed: int, stream: str) -> np.random.Generator:
    """The generator of one stream of a seed.

    Args:
        seed: What a user chose.
        stream: What is drawn, one of `STREAMS`.

    Raises:
        RaspLensError: If there is no such stream, or the seed is no whole number from 0 on.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise RaspLensError(f"A seed must be a whole number of at least 0; got {seed!r}.")
    if stream not in STREAMS:
        raise RaspLensError(f"There is no random stream {stream!r}. There are {', '.join(STREAMS)}.")
    return np.random.default_rng([seed, STREAMS[stream]])


def first_map(width: int, *seeds: int) -> np.random.Generator:
    """The generator of the first map of a compression.

    Args:
        width: Of the map.
        seeds: What a user chose, and the number of the attempt or of the member.
    """
    if not seeds:
        raise RaspLensError("The first map of a compression needs at least one seed; got none.")
    return np.random.default_rng([FIRST_MAPS, width, *seeds])
