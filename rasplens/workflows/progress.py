"""How long computations stand, on the progress bar."""

from collections.abc import Callable
from typing import Any

from rasplens import terminal


class Rate:
    """How fast a training goes. Its first steps, which JAX compiles, count for no rate.

    Args:
        steps: How many there are in all.
    """

    def __init__(self, steps: int):
        self.steps = steps
        self.first: Any = None

    def of(self, now: Any) -> str:
        """Steps a second, and how long the remaining ones take if it goes on so."""
        self.first = self.first or now
        done, seconds = now.step - self.first.step, now.seconds - self.first.seconds
        if not done or not seconds:
            return f"compiled by JAX, and the first steps: {self.first.seconds:.0f} s"
        return f"{done / seconds:.0f} steps/s  {seconds / done * (self.steps - now.step):.0f} s left"


def training_report(steps: int, n_models: int, advance: terminal.Advance) -> Callable[[Any], None]:
    """What shows how a training stands."""
    rate = Rate(steps)

    def report(now: Any) -> None:
        seed = "" if n_models == 1 else f"seed {now.seed}  "
        advance(f"{seed}loss {now.loss:.4f}  accuracy {now.token:.4f}  {rate.of(now)}", now.step, steps)

    return report


def comparison_report(name: str, advance: terminal.Advance) -> Callable[[str], None]:
    """What shows which stage of a comparison begins."""
    from rasplens.compare.pipeline import STAGES

    return lambda stage: advance(f"{name}: {stage}", STAGES.index(stage), len(STAGES))
