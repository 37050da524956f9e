"""A model that learned a task: its weights and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rasplens.model import StorageError, Transformer, load, load_provenance, save


@dataclass(frozen=True, eq=False)
class LearnedModel:
    """A learned transformer.

    Attributes:
        transformer: The weights.
        task: The name of the task that it learned.
        provenance: Where the weights come from, in JSON values: at least `origin`, a phrase; for models
            trained here, also recipe, seed, steps, accuracy and history.
    """

    transformer: Transformer
    task: str
    provenance: Mapping[str, Any]

    @property
    def origin(self) -> str:
        """Where the weights come from, in a phrase."""
        return self.provenance["origin"]

    @property
    def history(self) -> list[dict[str, Any]]:
        """What training reported, chunk by chunk; empty for imported models."""
        return self.provenance.get("history", [])

    def save(self, path: str | Path) -> None:
        """Writes the model to one safetensors file.

        Raises:
            StorageError: If the folder does not exist.
        """
        save(self.transformer, path, {"task": self.task, **self.provenance})

    def __repr__(self) -> str:
        return f"LearnedModel({self.task!r}, {self.origin}, {self.transformer!r})"


def load_learned(path: str | Path) -> LearnedModel:
    """The model that `LearnedModel.save` wrote.

    Raises:
        StorageError: If the file cannot be read, or holds no learned model.
    """
    provenance = load_provenance(path)
    if "task" not in provenance or "origin" not in provenance:
        raise StorageError(f"{path} does not say which task it learned. Was it saved from a LearnedModel?")
    task = provenance.pop("task")
    history = provenance.get("history", [])
    texts = isinstance(task, str) and isinstance(provenance["origin"], str)
    if not (texts and isinstance(history, list) and all(isinstance(report, dict) for report in history)):
        raise StorageError(f"{path} does not say in words which task it learned, and how.")
    return LearnedModel(load(path), task, provenance)
