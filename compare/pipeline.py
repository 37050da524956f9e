"""The comparison: the modules of this package, in the order in which they work."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from rasplens.compare.ablation import (
    WAYS,
    edge_effects,
    head_effects,
    head_position_effects,
    joint_effects,
    neuron_effects,
)
from rasplens.compare.attention import head_similarities, split_heads
from rasplens.compare.behaviour import Discrimination, behaviour, discriminate
from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence import (
    ablation_axis,
    above,
    attention_axis,
    behaviour_axis,
    interchange_axis,
    subspaces_axis,
)
from rasplens.compare.interchange import interchange_table, interchanges, tested_variables
from rasplens.compare.interface import Interface
from rasplens.compare.pairing import Pairing, pair
from rasplens.compare.profiles import correlate, critical_overlap
from rasplens.compare.ranking import Ranking
from rasplens.compare.representations import explained_table, overlap_table, representations
from rasplens.compare.similarity import stream_similarity
from rasplens.compare.subspaces import decodability
from rasplens.compare.verdict import verdict
from rasplens.compile import CompiledModel
from rasplens.tasks import Accuracy, Task, answers

N_INPUTS = 1_000
"""Held-out inputs on which models are compared, where the task has so many."""

STAGES = ("pairing", "residual subspaces", "attention", "interchange", "ablations", "behaviour")

Progress = Callable[[str], None]
"""Called with the name of each of the `STAGES` as it begins."""


@overload
def compare(
    references: CompiledModel,
    learned: Any,
    *,
    task: Task,
    n_inputs: int = N_INPUTS,
    seed: int = 0,
    interface: Interface | None = None,
    progress: Progress | None = None,
) -> Comparison: ...


@overload
def compare(
    references: Sequence[CompiledModel],
    learned: Any,
    *,
    task: Task,
    n_inputs: int = N_INPUTS,
    seed: int = 0,
    interface: Interface | None = None,
    progress: Progress | None = None,
) -> Ranking: ...


def compare(
    references: CompiledModel | Sequence[CompiledModel],
    learned: Any,
    *,
    task: Task,
    n_inputs: int = N_INPUTS,
    seed: int = 0,
    interface: Interface | None = None,
    progress: Progress | None = None,
) -> Comparison | Ranking:
    """Which program a learned model implements, along five axes with their controls, and how sure that is.

    Args:
        references: A compiled program, or several rival ones: they are then also told apart on inputs on which
            they differ, and ranked.
        learned: A `LearnedModel`, `Transformer`, `HookedModel`, `TransformerBridge` or another `CompiledModel`.
        task: What both are asked.
        n_inputs: How many held-out inputs to use.
        seed: Of the choice of inputs and of the controls.
        interface: The learned model's words for the task, if they are not the task's own.
        progress: Called as each stage begins.

    Raises:
        ValueError: If a model does not fit the task, or there is no reference.
        TypeError: If the learned side is no model.
    """
    if isinstance(references, CompiledModel):
        return _compare(references, {}, learned, task, n_inputs, seed, interface, progress)
    if not references:
        raise ValueError("compare needs at least one compiled program.")
    comparisons = []
    for reference in references:
        rivals = {
            rival.output: discriminate(reference.program, rival.program, task, seed=seed)
            for rival in references
            if rival is not reference
        }
        comparisons.append(_compare(reference, rivals, learned, task, n_inputs, seed, interface, progress))
    return Ranking(tuple(sorted(comparisons, key=lambda one: -one.rank)))


def _compare(
    compiled: CompiledModel,
    telling: Mapping[str, Discrimination],
    learned: Any,
    task: Task,
    n_inputs: int,
    seed: int,
    interface: Interface | None,
    progress: Progress | None,
) -> Comparison:
    begin = progress or (lambda stage: None)
    begin("pairing")
    pairing = pair(compiled, learned, task, n_inputs, seed, interface)
    sides = {"compiled": pairing.reference, "learned": pairing.learned}
    begin("residual subspaces")
    decoded = decodability(pairing, seed)
    held, floor = representations(pairing), representations(pairing, "untrained")
    begin("attention")
    attention = head_similarities(pairing, seed)
    begin("interchange")
    interchanged = interchanges(pairing, held, floor, seed)
    begin("ablations")
    edges = {side: edge_effects(subject) for side, subject in sides.items()}
    untrained_edges = edge_effects(pairing.untrained)
    begin("behaviour")
    behaved = behaviour(pairing, telling, seed)
    axes = (
        behaviour_axis(behaved, seed),
        interchange_axis(interchanged, seed),
        attention_axis(pairing, attention, seed),
        ablation_axis(edges["compiled"], edges["learned"], untrained_edges, seed),
        subspaces_axis(decoded, tested_variables(pairing), seed),
    )
    accuracies = _accuracies(pairing)
    improved = float(above(accuracies["learned"].token, accuracies["untrained"].token))
    tables = {
        "behaviour": behaved.table,
        "interchange": interchange_table(interchanged),
        "attention": attention.table,
        "shared_heads": split_heads(pairing, attention),
        "decodability": decoded.table,
        "representations": explained_table(held),
        "overlaps": overlap_table(held),
        "similarity": stream_similarity(pairing, seed),
    }
    for side, subject in sides.items():
        tables |= {
            f"heads_{side}": head_effects(subject).table,
            f"head_positions_{side}": head_position_effects(subject).table,
            f"joint_{side}": joint_effects(subject),
            f"edges_{side}": edges[side].table,
        }
    tables["neurons_learned"] = neuron_effects(pairing.learned).table
    tables = {name: table for name, table in tables.items() if len(table) or name in Comparison.ALWAYS}
    frames = edges["compiled"].table, edges["learned"].table
    return Comparison(
        task=task.name,
        program=compiled.output,
        learned_origin=getattr(learned, "origin", type(learned).__name__),
        n_inputs=pairing.n_inputs,
        seed=seed,
        accuracies=accuracies,
        axes=axes,
        verdict=verdict(axes, interchanged, improved),
        tables=tables,
        correlations={way: correlate(*frames, way, seed) for way in WAYS},
        overlaps={way: critical_overlap(*frames, way) for way in WAYS},
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
