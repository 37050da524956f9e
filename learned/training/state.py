"""A training run on disk: all that it needs to go on as if nothing had happened, and its history."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rasplens.learned.training.run_files import load_run, no_room, save_run


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
    seconds: float


History = tuple[Report, ...]


@dataclass(frozen=True, eq=False)
class TrainingState:
    """A run between two chunks of steps.

    Attributes:
        arrays: Trained weights and the optimiser's state, as a tree of arrays `[member, ...]`.
        generators: The state of each member's random generator.
        histories: What was reported of each member; its last step is where it stands.
        seconds: How long the run has taken so far.
    """

    arrays: Any
    generators: tuple[Mapping[str, Any], ...]
    histories: tuple[History, ...]
    seconds: float

    def reports(self) -> list[Report]:
        """Every report, in the order of the steps."""
        every = [report for history in self.histories for report in history]
        return sorted(every, key=lambda report: report.step)


def save_state(state: TrainingState, path: Path, run: Mapping[str, Any]) -> None:
    """Writes a state, which appears complete or not at all.

    Args:
        state: What to write.
        path: The file.
        run: What tells this run from others, in JSON values; `load_state` checks it.

    Raises:
        StorageError: If it cannot be written; an older state in the same place is then still there.
    """
    progress = {
        "generators": state.generators,
        "histories": [[asdict(report) for report in history] for history in state.histories],
        "seconds": state.seconds,
    }
    save_run(path, state.arrays, run, progress)


def load_state(path: Path, first: TrainingState, run: Mapping[str, Any]) -> TrainingState:
    """The state that `save_state` wrote, or the first state if there is none.

    Args:
        path: The file.
        first: The state of the run before its first step.
        run: What tells this run from others.

    Raises:
        StorageError: If the file is damaged, or is the state of another run; the message says what differs.
    """
    if not path.exists():
        return first
    arrays, progress = load_run(path, first.arrays, run)
    return TrainingState(
        arrays,
        tuple(progress["generators"]),
        tuple(tuple(Report(**report) for report in history) for history in progress["histories"]),
        progress["seconds"],
    )


def append_history(state_path: Path, reports: Sequence[Report], anew: bool = False) -> None:
    """Adds reports to the history beside a state, one JSON object per line.

    Raises:
        StorageError: If it cannot be written.
    """
    path = state_path.with_suffix(".jsonl")
    try:
        with path.open("w" if anew else "a") as file:
            file.writelines(json.dumps(asdict(report)) + "\n" for report in reports)
    except OSError as error:
        raise no_room(path, error) from None
