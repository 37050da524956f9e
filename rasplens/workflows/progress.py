"""How long computations stand, on the progress bar."""

from collections.abc import Callable
from typing import Any

from rasplens import terminal


def training_report(steps: int, n_models: int, advance: terminal.Advance) -> Callable[[Any], None]:
    """What shows how a training stands."""

    def report(now: Any) -> None:
        seed = "" if n_models == 1 else f"seed {now.seed}  "
        rate = f"{now.step / now.seconds:.0f} steps/s  {time_left(now, steps)}"
        advance(f"{seed}loss {now.loss:.4f}  accuracy {now.token:.4f}  {rate}", now.step, steps)

    return report


def comparison_report(name: str, advance: terminal.Advance) -> Callable[[str], None]:
    """What shows which stage of a comparison begins."""
    from rasplens.compare.pipeline import STAGES

    return lambda stage: advance(f"{name}: {stage}", STAGES.index(stage), len(STAGES))


def time_left(now: Any, steps: int) -> str:
    """How long the remaining steps take if they take as long as those that are done."""
    return f"{now.seconds / now.step * (steps - now.step):.0f} s left"
