"""A progress bar for long work, and the callbacks of trainings, comparisons and sweeps that drive it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from rasplens import terminal

Advance = Callable[[str, int, int], None]
"""Called with (what is being done, how many steps are done, of how many)."""


@contextmanager
def progress_bar(description: str) -> Iterator[Advance]:
    """A progress bar as long as the context lasts: on the error stream, if that is a terminal, or in a notebook.

    Example:
        >>> with progress_bar("comparing") as advance:
        ...     result = compare(compiled, model, task=task, progress=comparison_report(advance))
    """
    here = Console(highlight=False, markup=False)
    console = here if here.is_jupyter else terminal.err
    hidden = terminal.err.quiet or not (console.is_terminal or console.is_jupyter)
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=hidden) as bar:
        job = bar.add_task(description, total=None)

        def advance(what: str, done: int, total: int) -> None:
            bar.update(job, description=what, completed=done, total=total)

        yield advance


class Rate:
    """The speed of a training. Its first report, which includes JAX's compilation, does not count.

    Args:
        steps: How many there are in all.
    """

    def __init__(self, steps: int):
        self.steps = steps
        self.first: Any = None

    def of(self, now: Any) -> str:
        """Return steps per second, and the time that the remaining steps take at that speed."""
        self.first = self.first or now
        done, seconds = now.step - self.first.step, now.seconds - self.first.seconds
        if not done or not seconds:
            return f"JAX compilation and first steps: {self.first.seconds:.0f} s"
        return f"{done / seconds:.0f} steps/s  {seconds / done * (self.steps - now.step):.0f} s left"


def training_report(advance: Advance, steps: int, n_models: int = 1) -> Callable[[Any], None]:
    """Return the callback of `train`: it shows loss, accuracy and time left of a training of so many steps."""
    rate = Rate(steps)

    def report(now: Any) -> None:
        seed = "" if n_models == 1 else f"seed {now.seed}  "
        advance(f"{seed}loss {now.loss:.4f}  accuracy {now.token:.4f}  {rate.of(now)}", now.step, steps)

    return report


def comparison_report(advance: Advance, name: str = "comparing") -> Callable[[str], None]:
    """Return the callback of `compare` and `rank`: it shows which stage of a comparison begins."""
    from rasplens.compare.pipeline import STAGES

    return lambda stage: advance(f"{name}: {stage}", STAGES.index(stage.partition(":")[0]), len(STAGES))


def sweep_report(advance: Advance) -> Callable[[Any], None]:
    """Return the callback of `sweep`: it shows how many jobs failed, and the time left."""

    def report(now: Any) -> None:
        failed = f"{now.failed} failed  " if now.failed else ""
        left = "" if now.seconds_left != now.seconds_left else f"{now.seconds_left:.0f} s left"
        advance(f"jobs  {failed}{left}", now.done, now.total)

    return report
