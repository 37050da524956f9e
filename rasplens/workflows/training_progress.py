"""How a training stands, on the progress bar."""

from collections.abc import Callable
from typing import Any

from rasplens import terminal


def training_report(steps: int, n_models: int, advance: terminal.Advance) -> Callable[[Any], None]:
    """What shows how a training stands."""

    def report(now: Any) -> None:
        seed = "" if n_models == 1 else f"seed {now.seed}  "
        rate = f"{now.step / now.seconds:.0f} steps/s  {now.seconds / now.step * (steps - now.step):.0f} s left"
        advance(f"{seed}loss {now.loss:.4f}  accuracy {now.token:.4f}  {rate}", now.step, steps)

    return report
