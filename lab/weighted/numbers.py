"""The numbers of fitted programs, kept as JSON among the results."""

import json
from pathlib import Path

import numpy as np

from lab.page import RESULTS
from rasplens.compile.weighted import Vote, numbers_of


def keep(program: Vote, stem: str, folder: Path = RESULTS) -> None:
    """Keeps the numbers of a program."""
    numbers = {name: [round(float(n), 4) for n in one.ravel()] for name, one in numbers_of(program).items()}
    lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in numbers.items())
    (folder / f"{stem}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def kept(stem: str, folder: Path = RESULTS) -> dict[str, np.ndarray]:
    """The numbers that were kept, flat, by name."""
    return {name: np.array(one) for name, one in json.loads((folder / f"{stem}.json").read_text()).items()}
