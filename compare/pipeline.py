"""The comparison: the modules of this package, in the order in which they work."""

from collections.abc import Callable
from typing import Any

from rasplens.compare.ablation import WAYS, edge_effects, head_effects
from rasplens.compare.attention import head_similarities
from rasplens.compare.comparison import Comparison
from rasplens.compare.pairing import Pairing, pair
from rasplens.compare.profiles import correlate
from rasplens.compare.subspaces import decodability
from rasplens.compile import CompiledModel
from rasplens.tasks import Accuracy, Task, answers

N_INPUTS = 1_000
"""Held-out inputs on which models are compared, where the task has so many."""

STAGES = ("pairing", "residual subspaces", "attention", "head ablations", "edge ablations")

Progress = Callable[[str], None]
"""Called with the name of each of the `STAGES` as it begins."""


def compare(
    compiled: CompiledModel,
    learned: Any,
    *,
    task: Task,
    n_inputs: int = N_INPUTS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """How far a learned model matches a compiled one, along three axes, each with its controls.

    Args:
        compiled: The reference.
        learned: A `LearnedModel`, `Transformer`, `HookedModel` or another `CompiledModel`.
        task: What both are asked.
        n_inputs: How many held-out inputs to use.
        seed: Of the choice of inputs and of the controls.
        progress: Called as each stage begins.

    Raises:
        ValueError: If a model does not fit the task.
        TypeError: If the learned side is no model.
    """
    begin = progress or (lambda stage: None)
    begin("pairing")
    pairing = pair(compiled, learned, task, n_inputs, seed)
    sides = {"compiled": pairing.reference, "learned": pairing.learned}
    begin("residual subspaces")
    subspaces = decodability(pairing, seed)
    begin("attention")
    attention = head_similarities(pairing, seed)
    begin("head ablations")
    heads = {side: head_effects(subject) for side, subject in sides.items()}
    begin("edge ablations")
    edges = {side: edge_effects(subject) for side, subject in sides.items()}
    return Comparison(
        task=task.name,
        program=compiled.output,
        learned_origin=getattr(learned, "origin", type(learned).__name__),
        n_inputs=len(pairing.ids),
        seed=seed,
        accuracies=_accuracies(pairing),
        agreement=float((pairing.reference.answers() == pairing.learned.answers()).mean()),
        decodability=subspaces,
        attention=attention,
        heads=heads,
        edges=edges,
        correlations={way: correlate(edges["compiled"], edges["learned"], way, seed) for way in WAYS},
        pairing=pairing,
    )


def _accuracies(pairing: Pairing) -> dict[str, Accuracy]:
    task, target = pairing.task, pairing.task.target(pairing.ids)
    rights = {
        "program": answers(task, pairing.compiled.program, pairing.ids) == target,
        "compiled": pairing.reference.right(),
        "learned": pairing.learned.right(),
        "untrained": pairing.untrained.right(),
    }
    return {name: Accuracy(float(right.mean()), float(right.all(axis=1).mean())) for name, right in rights.items()}
