"""What a comparison found: tidy tables, each score beside its control."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rasplens import __version__
from rasplens.compare.pairing import Pairing
from rasplens.compare.profiles import Correlation
from rasplens.model.storage import write_atomically
from rasplens.tasks import Accuracy


@dataclass(frozen=True, eq=False)
class Comparison:
    """A compiled and a learned model, compared.

    It states evidence and no verdict: how these scores map to "implements the program" has not been
    calibrated yet.

    Attributes:
        task: The task's name.
        program: The name of the program that the reference computes.
        learned_origin: Where the learned model comes from.
        n_inputs: The number of held-out inputs.
        seed: Of inputs and controls.
        accuracies: Of `program`, `compiled`, `learned` and `untrained`, on those inputs.
        agreement: Share of answers on which compiled and learned model agree, right or wrong.
        decodability: See `rasplens.compare.subspaces.decodability`.
        attention: See `rasplens.compare.attention.head_similarities`.
        heads: By side ("compiled", "learned"), see `rasplens.compare.ablation.head_effects`.
        edges: By side, see `rasplens.compare.ablation.edge_effects`.
        correlations: By way of ablation, of the two edge profiles; None where a profile is constant.
        pairing: The models and their activations; not stored.
    """

    task: str
    program: str
    learned_origin: str
    n_inputs: int
    seed: int
    accuracies: Mapping[str, Accuracy]
    agreement: float
    decodability: pd.DataFrame
    attention: pd.DataFrame
    heads: Mapping[str, pd.DataFrame]
    edges: Mapping[str, pd.DataFrame]
    correlations: Mapping[str, Correlation | None]
    pairing: Pairing

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by name."""
        return {
            "decodability": self.decodability,
            "attention": self.attention,
            **{f"heads_{side}": frame for side, frame in self.heads.items()},
            **{f"edges_{side}": frame for side, frame in self.edges.items()},
        }

    def decodability_by_point(self) -> pd.DataFrame:
        """The decodability table averaged over positions: one row per variable and hook point."""
        keys = ["variable", "measure", "point"]
        scores = ["score", "chance", "shuffled", "untrained"]
        return self.decodability.groupby(keys, sort=False)[scores].mean().reset_index()

    @property
    def findings(self) -> list[str]:
        """What the numbers say, in plain sentences."""
        from rasplens.compare.findings import findings

        return findings(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the activations, in JSON values."""
        return {
            "rasplens": __version__,
            "task": self.task,
            "program": self.program,
            "learned": self.learned_origin,
            "n_inputs": self.n_inputs,
            "seed": self.seed,
            "accuracies": {name: accuracy._asdict() for name, accuracy in self.accuracies.items()},
            "agreement": self.agreement,
            "correlations": {way: c and asdict(c) for way, c in self.correlations.items()},
            "findings": self.findings,
            "tables": {name: _records(frame) for name, frame in self.tables.items()},
        }

    def to_json(self) -> str:
        """Everything but the activations, as JSON."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Writes `to_json` to a file."""
        write_atomically(Path(path), self.to_json().encode())

    def report(self, path: str | Path) -> None:
        """Writes the report: one HTML page that opens offline."""
        from rasplens.compare.report import render

        write_atomically(Path(path), render(self).encode())


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.astype(object).where(frame.notna(), None)
    return [
        {str(name): value.item() if isinstance(value, np.generic) else value for name, value in row.items()}
        for row in plain.to_dict(orient="records")
    ]
