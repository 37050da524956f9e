"""The comparison: the modules of this package, in the order in which they work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.ablation.effects import (
    WAYS,
    Effects,
    edge_effects,
    head_effects,
    head_position_effects,
    joint_effects,
    neuron_effects,
)
from rasplens.compare.evidence.ablation.profiles import correlate, critical_overlap, matched_profiles
from rasplens.compare.evidence.attention.heads import HeadSimilarities, head_similarities, split_heads
from rasplens.compare.evidence.axes import (
    Axis,
    ablation_axis,
    attention_axis,
    behaviour_axis,
    interchange_axis,
    subspaces_axis,
)
from rasplens.compare.evidence.behaviour import Behaviour, Discrimination, behaviour, discriminate
from rasplens.compare.evidence.interchange.accuracy import (
    Interchange,
    interchange_table,
    interchanges,
    tested_variables,
)
from rasplens.compare.evidence.subspaces.decodability import Decodability, decodability
from rasplens.compare.evidence.subspaces.representations import (
    Place,
    Representation,
    explained_table,
    overlap_table,
    representations,
)
from rasplens.compare.evidence.subspaces.similarity import stream_similarity
from rasplens.compare.models.pairing import Pairing, pair
from rasplens.compare.models.vocabulary import Interface
from rasplens.compare.ranking import Ranking
from rasplens.compare.verdict.verdict import verdict
from rasplens.compile import CompiledModel
from rasplens.tasks import Accuracy, Task, answers

N_INPUTS = 1_000
"""Held-out inputs on which models are compared, where the task has so many."""

STAGES = ("residual subspaces", "attention", "interchange", "edge ablations", "behaviour", "descriptions")

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
    pairing = pair(compiled, learned, task, n_inputs, seed, interface)
    found = gather(pairing, telling, seed, progress)
    begin = progress or (lambda stage: None)
    begin("descriptions")
    sides = {"compiled": pairing.reference, "learned": pairing.learned}
    tables = {
        "behaviour": found.behaviour.table,
        "interchange": interchange_table(found.interchanged),
        "attention": found.attention.table,
        "shared_heads": split_heads(pairing, found.attention),
        "decodability": found.decodability.table,
        "representations": explained_table(found.representations),
        "overlaps": overlap_table(found.representations),
        "similarity": stream_similarity(pairing, seed),
    }
    for side, subject in sides.items():
        tables |= {
            f"heads_{side}": head_effects(subject).table,
            f"head_positions_{side}": head_position_effects(subject).table,
            f"joint_{side}": joint_effects(subject),
            f"edges_{side}": found.edges[side].table,
        }
    matched = found.attention.table[found.attention.table["matched"].astype(bool)]
    tables["matched_profiles"] = matched_profiles(
        matched, tables["head_positions_compiled"], tables["head_positions_learned"]
    )
    tables["neurons_learned"] = neuron_effects(pairing.learned).table
    frames = found.edges["compiled"].table, found.edges["learned"].table
    accuracies = _accuracies(pairing)
    return Comparison(
        task=task.name,
        program=compiled.output,
        learned_origin=getattr(learned, "origin", type(learned).__name__),
        n_inputs=pairing.n_inputs,
        seed=seed,
        accuracies=accuracies,
        axes=found.axes,
        verdict=verdict(found.axes, found.interchanged, pairing),
        tables={name: table for name, table in tables.items() if len(table) or name in Comparison.ALWAYS},
        correlations={way: correlate(*frames, way, seed) for way in WAYS},
        overlaps={way: critical_overlap(*frames, way) for way in WAYS},
        pairing=pairing,
    )


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the axes of a comparison are made of.

    Attributes:
        decodability: Of the variables in the learned residual stream.
        representations: How that represents them.
        attention: How heads attend.
        interchanged: What the variables do there.
        edges: What attention edges are worth, by side.
        behaviour: How the model answers.
        axes: All of it on one scale.
    """

    decodability: Decodability
    representations: dict[Place, Representation]
    attention: HeadSimilarities
    interchanged: list[Interchange]
    edges: Mapping[str, Effects]
    behaviour: Behaviour
    axes: tuple[Axis, ...]


def gather(
    pairing: Pairing, telling: Mapping[str, Discrimination], seed: int, progress: Progress | None = None
) -> Evidence:
    """The evidence that a verdict needs.

    Args:
        pairing: The models on the same inputs.
        telling: By the rival's name, inputs that tell it from the reference.
        seed: Of pairs, shuffles and bootstrap.
        progress: Called as each stage begins.
    """
    begin = progress or (lambda stage: None)
    begin("residual subspaces")
    decoded = decodability(pairing, seed)
    held, floor = representations(pairing), representations(pairing, "untrained")
    begin("attention")
    attention = head_similarities(pairing, seed)
    begin("interchange")
    interchanged = interchanges(pairing, held, floor, seed)
    begin("edge ablations")
    edges = {"compiled": edge_effects(pairing.reference), "learned": edge_effects(pairing.learned)}
    begin("behaviour")
    behaved = behaviour(pairing, telling, seed)
    axes = (
        behaviour_axis(behaved, seed),
        interchange_axis(interchanged, seed),
        attention_axis(pairing, attention, seed),
        ablation_axis(pairing, edges["compiled"], edges["learned"], seed),
        subspaces_axis(decoded, tested_variables(pairing), seed),
    )
    return Evidence(decoded, held, attention, interchanged, edges, behaved, axes)


def _accuracies(pairing: Pairing) -> dict[str, Accuracy]:
    task, target = pairing.task, pairing.task.target(pairing.ids)
    rights = {
        "program": answers(task, pairing.compiled.program, pairing.ids) == target,
        "compiled": pairing.reference.right(),
        "learned": pairing.learned.right(),
        "untrained": pairing.untrained.right(),
    }
    return {name: Accuracy(float(right.mean()), float(right.all(axis=1).mean())) for name, right in rights.items()}
