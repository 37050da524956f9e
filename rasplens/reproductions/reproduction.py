"""A published model and its figures: how it is trained here, and what is held beside what was published."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from rasplens.compare import StudiedModel, as_studied_model
from rasplens.learned import LearnedModel, Recipe, train
from rasplens.model import Transformer
from rasplens.tasks import Task, get_task

GENERATOR = '<meta name="generator" content="RASPLens">'
"""Says in the head of a page who wrote it."""


@dataclass(frozen=True)
class Finding:
    """One published figure beside ours.

    Attributes:
        measure: What is measured.
        theirs: The published figure, as it is published.
        ours: The same, of the model trained here.
        holds: Whether ours is what theirs says, or better; None where nothing is claimed.
    """

    measure: str
    theirs: str
    ours: str
    holds: bool | None = None


@dataclass(frozen=True)
class Reproduction:
    """A published model and what was found in it.

    Attributes:
        name: On the command line.
        source: Who published it.
        model: What it is, in a line.
        task: The name of its task.
        recipe: The name of the recipe that trains it here.
        seed: The random seed of the training.
        findings: From the task and a trained model, the published figures and ours.
        figures: From the same, figures by name.
    """

    name: str
    source: str
    model: str
    task: str
    recipe: str
    seed: int
    findings: Callable[[Task, Transformer], list[Finding]]
    figures: Callable[[Task, Transformer], Mapping[str, go.Figure]]

    @property
    def command(self) -> str:
        """The command that reproduces it."""
        return f"rasplens reproduce {self.name}"

    def train(self, recipe: Recipe | None = None, **options: Any) -> LearnedModel:
        """The model, trained here.

        Args:
            recipe: Instead of its own, for a smaller budget.
            options: What else `rasplens.learned.train` takes.
        """
        return train(self.task, recipe or self.recipe, self.seed, **options)

    def check(self, learned: LearnedModel) -> list[Finding]:
        """The published figures beside those of a model."""
        return self.findings(get_task(self.task), learned.transformer)

    def pages(self, learned: LearnedModel) -> dict[str, str]:
        """The figures by file name, each as one page that opens offline and says who wrote it."""
        found = {}
        for name, figure in self.figures(get_task(self.task), learned.transformer).items():
            page = figure.to_html(include_plotlyjs=True)
            found[f"{self.name}_{name}.html"] = page.replace("<head>", f"<head>{GENERATOR}", 1)
        return found


def at_least(measure: str, theirs: str, ours: float, floor: float) -> Finding:
    """A finding that holds from a floor on."""
    return Finding(measure, theirs, f"{ours:.4f}", ours >= floor)


def on_held_out(task: Task, model: Transformer) -> StudiedModel:
    """A model with what it does on the held-out inputs of its task."""
    return as_studied_model(model, task, task.held_out)
