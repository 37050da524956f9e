"""The progress report of a compression."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class CompressionReport:
    """How a compression stands after a chunk of steps.

    Attributes:
        d: The width.
        seed: The seed.
        step: Steps done.
        of: Steps in all.
        output_loss: The loss of the answers over the chunk.
        layer_loss: The squared error of the layers' outputs, added up.
        seconds: Since the start, interruptions not included.
    """

    d: int
    seed: int
    step: int
    of: int
    output_loss: float
    layer_loss: float
    seconds: float = 0.0


Progress = Callable[[CompressionReport], None]
"""Called for every model after every chunk of steps."""
