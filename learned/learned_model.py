"""A model that learned a task: its weights and where they come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

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
        """The reports of training, chunk by chunk; empty for imported models."""
        return self.provenance.get("history", [])

    @property
    def prefix(self) -> tuple[int, ...]:
        """Ids that stand before every input, such as a BOS; usually there are none."""
        return tuple(self.provenance.get("prefix", ()))

    def save(self, path: str | Path) -> None:
        """Writes the model to one safetensors file.

        Raises:
            StorageError: If the folder does not exist.
        """
        save(self.transformer, path, {"task": self.task, **self.provenance})

    def __repr__(self) -> str:
        return f"LearnedModel({self.task!r}, {self.origin}, {self.transformer!r})"

    def _repr_html_(self) -> str:
        head = Markup("<p><b>{}</b>, {}</p><p>{}</p>").format(self.task, self.origin, repr(self.transformer))
        return str(head + _history_svg([report["token"] for report in self.history if "token" in report]))


CURVE = Markup(
    '<svg role="img" aria-label="Token accuracy during training" viewBox="-4 -4 {} {}" width="{}">'
    '<rect width="{}" height="{}" fill="none" stroke="currentColor" opacity="0.3"/>'
    '<polyline points="{}" fill="none" stroke="#2b74b8" stroke-width="2"/></svg>'
    "<p>Token accuracy during training, from 0 to 1: {:.3f} at the end.</p>"
)


def _history_svg(shares: Sequence[float], width: int = 420, height: int = 120) -> Markup:
    """Accuracy over training as a line; nothing where there is no history."""
    if len(shares) < 2:
        return Markup("")
    step = width / (len(shares) - 1)
    points = " ".join(f"{i * step:.1f},{(1 - share) * height:.1f}" for i, share in enumerate(shares))
    return CURVE.format(width + 8, height + 8, width, width, height, points, shares[-1])


def load_learned(path: str | Path) -> LearnedModel:
    """The model that `LearnedModel.save` wrote.

    Raises:
        StorageError: If the file cannot be read, or holds no learned model.
    """
    provenance = load_provenance(path)
    if "task" not in provenance or "origin" not in provenance:
        raise StorageError(f"{path} does not say which task it learned. Was it saved from a LearnedModel?")
    task = provenance.pop("task")
    history, prefix = provenance.get("history", []), provenance.get("prefix", [])
    if not (isinstance(prefix, list) and all(type(i) is int and i >= 0 for i in prefix)):
        raise StorageError(
            f"{path}: its `prefix` must be a list of token ids, whole numbers from 0; got {prefix!r}."
        )
    texts = isinstance(task, str) and isinstance(provenance["origin"], str)
    if not (texts and isinstance(history, list) and all(isinstance(report, dict) for report in history)):
        raise StorageError(f"{path}: its `task` and `origin` must be text, and its `history` a list of objects.")
    return LearnedModel(load(path), task, provenance)
