"""The progress report of a training."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """How the training of one model stands after a chunk of steps.

    Attributes:
        seed: Which model of an ensemble.
        step: Steps done.
        loss: Mean cross-entropy over the chunk, in nats per predicted token.
        training_token: Token accuracy on a fixed sample of the inputs that are not held out, in [0, 1]; early
            stopping looks at this one.
        token: Held-out token accuracy, in [0, 1].
        sequence: Held-out whole-input accuracy, in [0, 1].
        seconds: Since the start, compilation included and interruptions not.
    """

    seed: int
    step: int
    loss: float
    training_token: float
    token: float
    sequence: float
    seconds: float = 0.0


Progress = Callable[[Report], None]
"""Called for every model after every chunk of steps."""
