"""The result of a comparison: tidy tables, each score beside its control."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from markupsafe import Markup

from rasplens import __version__
from rasplens.compare.axes import Axis
from rasplens.compare.evidence.ablation.measurement import Method
from rasplens.compare.evidence.ablation.profiles import Correlation, Overlap
from rasplens.compare.evidence.attention.kept_models import KeptModels
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.verdict.headline import headline
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY, UNKNOWN, Verdict
from rasplens.errors import RaspLensError
from rasplens.model.storage import StorageError, checksum, reading, write_atomically
from rasplens.tasks import Accuracy

FORMAT = 9
"""Version of the file format of comparisons; it increases whenever the content of the tables changes."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """A compiled and a learned model, compared.

    Attributes:
        task: The task's name.
        program: The name of the program that the reference computes.
        program_text: The program as it is written, see `rasplens.compile.program_text`.
        about: What it computes, in words; empty where nobody said.
        learned_origin: Where the learned model comes from.
        n_inputs: The number of held-out inputs.
        seed: Of inputs and controls.
        accuracies: Of `program`, `compiled` and `learned`, on those inputs. But for parts also `untrained`; and
            where answers are next tokens `generated`: of the learned model that reads its own.
        axes: The evidence, see `rasplens.compare.axes`.
        verdict: What it says.
        tables: Tidy frames by name; see the function that makes each: examples, behaviour, interchange, attention,
            shared_heads, decodability, representations, overlaps, similarity, matched_profiles, and
            by side ("compiled", "learned") heads, head_positions, joint, edges, neurons.
        correlations: By method of ablation, of the two edge profiles; None where a profile is constant.
        overlaps: By method of ablation, of the critical edges.
        findings: What the numbers say, in plain sentences; see `rasplens.compare.report.findings`.
        models: Both models, where they are small enough to be stored; else None.
        pairing: The models and their activations; not stored, None for a comparison that was loaded.
    """

    ALWAYS: ClassVar = ("behaviour", "interchange", "attention", "decodability", "heads_compiled", "heads_learned",
                        "edges_compiled", "edges_learned")  # fmt: skip

    task: str
    program: str
    program_text: str
    about: str
    learned_origin: str
    n_inputs: int
    seed: int
    accuracies: Mapping[str, Accuracy]
    axes: tuple[Axis, ...]
    verdict: Verdict
    tables: Mapping[str, pd.DataFrame]
    correlations: Mapping[Method, Correlation | None]
    overlaps: Mapping[Method, Overlap]
    findings: tuple[str, ...] = ()
    models: KeptModels | None = None
    pairing: Pairing | None = None

    @property
    def rank(self) -> float:
        """Higher for likelier comparisons: by the answer, then by how far the claims hold on average."""
        claims = [claim.score for claim in self.verdict.all_claims if claim.is_measured]
        order = NOT, UNKNOWN, PARTLY, IMPLEMENTS
        return order.index(self.verdict.answer) + float(np.mean(claims) if claims else 0.0) / 2

    def axis(self, name: str) -> Axis:
        """One axis of evidence by its name."""
        return next(axis for axis in self.axes if axis.name == name)

    def by_side(self, name: str) -> dict[str, pd.DataFrame]:
        """The tables "heads", "edges", … of both sides."""
        sides = {side: f"{name}_{side}" for side in ("compiled", "learned")}
        return {side: self.tables[key] for side, key in sides.items() if key in self.tables}

    def decodability_by_point(self) -> pd.DataFrame:
        """The decodability table averaged over positions: one row per variable and hook point."""
        keys = ["variable", "measure", "point"]
        scores = ["score", "chance", "shuffled", "untrained"]
        return self.tables["decodability"].groupby(keys, sort=False)[scores].mean().reset_index()

    def to_dict(self) -> dict[str, Any]:
        """Everything but the activations and the models, in JSON values."""
        return {
            "rasplens": __version__,
            "format": FORMAT,
            "task": self.task,
            "program": self.program,
            "program_text": self.program_text,
            "about": self.about,
            "learned": self.learned_origin,
            "n_inputs": self.n_inputs,
            "seed": self.seed,
            "accuracies": {name: accuracy._asdict() for name, accuracy in self.accuracies.items()},
            "verdict": self.verdict.to_dict(),
            "axes": [axis.to_dict() for axis in self.axes],
            "correlations": {method: c and plain(asdict(c)) for method, c in self.correlations.items()},
            "overlaps": {method: plain(asdict(overlap)) for method, overlap in self.overlaps.items()},
            "findings": list(self.findings),
            "tables": {
                name: {"columns": list(frame), "rows": _records(frame)} for name, frame in self.tables.items()
            },
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Comparison":
        """The comparison that `to_dict` described, with the models if there are any, without activations.

        Raises:
            RaspLensError: If it was described in another format.
        """
        if values["format"] != FORMAT:
            raise RaspLensError(f"its format is {values['format']}, not {FORMAT}: compare again")
        axes: list[dict[str, Any]] = [
            {k: float("nan") if v is None else v for k, v in axis.items()} for axis in values["axes"]
        ]
        return cls(
            task=values["task"],
            program=values["program"],
            program_text=values["program_text"],
            about=values["about"],
            learned_origin=values["learned"],
            n_inputs=values["n_inputs"],
            seed=values["seed"],
            accuracies={name: Accuracy(**accuracy) for name, accuracy in values["accuracies"].items()},
            axes=tuple(Axis(**axis) for axis in axes),
            verdict=Verdict.from_dict(values["verdict"]),
            tables={name: _frame(table["rows"], table["columns"]) for name, table in values["tables"].items()},
            correlations={method: c and Correlation(**c) for method, c in values["correlations"].items()},
            findings=tuple(values["findings"]),
            models=KeptModels.from_dict(values["models"]) if values.get("models") else None,
            overlaps={method: Overlap(**overlap) for method, overlap in values["overlaps"].items()},
        )

    def to_json(self) -> str:
        """Everything but the activations, as JSON, with a checksum."""
        models = self.models and self.models.to_dict()
        values = json.loads(json.dumps({**self.to_dict(), "models": models}, allow_nan=False))
        return json.dumps({**values, "checksum": checksum(values, {})}, indent=1, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Writes `to_json` to a file, complete or not at all."""
        write_atomically(Path(path), self.to_json().encode())

    @classmethod
    def load(cls, path: str | Path) -> "Comparison":
        """Read the comparison that `save` wrote.

        Raises:
            StorageError: If there is no such file, it was changed, or holds no comparison of this version.
        """
        with reading(path, "comparison of this version", "Compare again."):
            values = _of_this_format(Path(path))
            is_whole, found = values["checksum"] == checksum(values, {}), cls.from_dict(values)
            if not is_whole:
                raise StorageError(f"{path} was changed after it was written: its checksum does not match.")
            again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
            if differing := [name for name in again if name != "rasplens" and again[name] != values[name]]:
                raise RaspLensError(f"the values of {', '.join(differing)} are not those of a comparison")
        return found

    def __repr__(self) -> str:
        levels = ", ".join(f"{level}: {answer}" for level, answer in self.verdict.levels.items())
        sentence = headline(self.program, self.verdict).sentence.removesuffix(".")
        return f"<Comparison with {self.learned_origin}: {sentence} ({levels})>"

    def _repr_html_(self) -> str:
        """The head of a report: the verdict, its levels, why, and the claims."""
        found = headline(self.program, self.verdict)
        level = Markup("<tr><td>same {}</td><td><b>{}</b></td><td>{}</td></tr>")
        levels = Markup("").join(level.format(line.level, line.answer, line.counts) for line in found.levels)
        reasons = Markup("").join(map(Markup("<li>{}</li>").format, found.reasons))
        claims = self.verdict.claims.drop(columns="substantial").to_html(index=False, float_format="{:.2f}".format)
        return str(
            Markup(
                "<p><b>{}</b></p><p>Task {}, {}</p><table>{}</table><ul>{}</ul>"
                "<details><summary>All claims</summary>{}</details>"
            ).format(found.sentence, self.task, self.learned_origin, levels, reasons, Markup(claims))
        )


def _of_this_format(path: Path) -> dict[str, Any]:
    """The values of a file of a comparison.

    Raises:
        StorageError: If it is another file, or of another version.
    """
    try:
        values = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or not {"format", "checksum"} <= set(values):
        raise StorageError(f"{path} is no comparison that was stored. Name the comparison.json of a run.")
    if values["format"] != FORMAT:
        raise StorageError(f"{path} has format {values['format']}; this RASPLens reads {FORMAT}. Compare again.")
    return values


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values: None for NaN."""
    return {name: None if isinstance(value, float) and value != value else value for name, value in values.items()}


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.astype(object).where(frame.notna(), None)
    return [
        {str(name): value.item() if isinstance(value, np.generic) else value for name, value in row.items()}
        for row in plain.to_dict(orient="records")
    ]


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """The table of `_records`; a column without any value is one of numbers that are not defined."""
    frame = pd.DataFrame(rows, columns=columns)
    empty = [name for name in columns if len(frame) and frame[name].isna().all()]
    return frame.astype(dict.fromkeys(empty, float))
