"""How well a model implements a program: measured by interventions on its hook points, apart from any training.

The model runs in torch, its nodes are patched by hooks. What the program says is computed by the compiled model in
numpy, patched at the parts that stand for the node, with the same inputs.

Source: Gupta et al. 2024, "InterpBench" (arXiv 2407.14494): interchange-intervention accuracy and strict accuracy.
Theirs count all answers. Where a program's answers hardly depend on a variable, that is near 1 for any model. So
the answers that change are counted alone as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int

from rasplens.compile import CompiledModel
from rasplens.compile.variable import nearest
from rasplens.learned.siit.circuit import Circuit, Node, Part, nodes_of
from rasplens.model import HookedModel, Transformer
from rasplens.model.forward import Hook, forward
from rasplens.model.random_streams import rng
from rasplens.tasks import Task
from rasplens.tasks.answers import behind
from rasplens.tasks.task import NO_ANSWER, Ids

N_PAIRS = 1_000
"""Of held-out inputs, for each node."""


@dataclass(frozen=True)
class ImplementationAccuracy:
    """Shares of right answers on held-out inputs, each in [0, 1].

    Attributes:
        behaviour: Without any intervention.
        interchange: With one node of the circuit taken from another input; by node.
        changed: Of those, the answers that the program changes; NaN where it changes none.
        strict: With one node outside of the circuit taken from another input: answers that stay right; by node.
    """

    behaviour: float
    interchange: Mapping[str, float]
    changed: Mapping[str, float]
    strict: Mapping[str, float]

    @property
    def least(self) -> dict[str, float]:
        """The smallest of each kind over all nodes; 1 where there is no such node."""
        parts = {"interchange": self.interchange, "changed": self.changed, "strict": self.strict}
        least = {name: min((v for v in values.values() if v == v), default=1.0) for name, values in parts.items()}
        return {"behaviour": self.behaviour, **least}

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.4f}" for name, value in self.least.items())


def implementation_accuracy(
    compiled: CompiledModel,
    transformer: Transformer,
    circuit: Circuit,
    task: Task,
    seed: int = 0,
    ids: Ids | None = None,
) -> ImplementationAccuracy:
    """How well a model implements a program in the nodes of a circuit.

    Every other pair takes the node from the source at all positions, the others at a single one.

    Args:
        compiled: The program.
        transformer: The model, for the task's own tokens.
        circuit: Which node stands for which of the compiled model's parts.
        task: The task.
        seed: Of the pairs.
        ids: Inputs to draw pairs from; the task's held-out ones by default.
    """
    ids = task.held_out if ids is None else ids
    base, source, taken = _pairs(task, ids, seed)
    hooked, right = HookedModel(transformer), task.target(base)
    interchange, changed, strict = {}, {}, {}
    for node in nodes_of(transformer.config):
        answers = _patched_answers(hooked, task, node, base, source, taken, compiled.offset)
        if node not in circuit:
            strict[str(node)] = float((answers == right).mean())
            continue
        expected = program_answers(compiled, task, circuit[node], base, source, taken)
        interchange[str(node)] = float((answers == expected)[expected != NO_ANSWER].mean())
        changed[str(node)] = _of_changes(answers, expected, right)
    with torch.no_grad():
        bos = (transformer.config.d_vocab - 1,) * compiled.offset
        logits = hooked(torch.as_tensor(behind(bos, ids)))[:, compiled.offset :]
    answers = task.codes(logits[:, list(task.loss_positions)].numpy())
    behaviour = float((answers == task.target(ids)).mean())
    return ImplementationAccuracy(behaviour, interchange, changed, strict)


def changed_within(
    compiled: CompiledModel,
    transformer: Transformer,
    circuit: Circuit,
    task: Task,
    seed: int = 0,
    ids: Ids | None = None,
) -> dict[str, float]:
    """`ImplementationAccuracy.changed`, with all nodes outside of the circuit held as they are on the base.

    Where this is lower, an interchange calls up what those nodes do not do on any ordinary input, and it is they
    that pass it on: a dormant path beside the circuit, which neither interchange nor strictness sees alone.

    Args:
        compiled: The program.
        transformer: The model, for the task's own tokens.
        circuit: Which node stands for which of the compiled model's parts.
        task: The task.
        seed: Of the pairs, which are those of `implementation_accuracy`.
        ids: Inputs to draw pairs from; the task's held-out ones by default.
    """
    base, source, taken = _pairs(task, task.held_out if ids is None else ids, seed)
    hooked, right = HookedModel(transformer), task.target(base)
    held, found = [node for node in nodes_of(transformer.config) if node not in circuit], {}
    for node, part in circuit.items():
        answers = _patched_answers(hooked, task, node, base, source, taken, compiled.offset, held)
        expected = program_answers(compiled, task, part, base, source, taken)
        found[str(node)] = _of_changes(answers, expected, right)
    return found


def _of_changes(
    answers: Int[np.ndarray, "pair loss_pos"],
    expected: Int[np.ndarray, "pair loss_pos"],
    right: Int[np.ndarray, "pair loss_pos"],
) -> float:
    """The share as expected of the answers that the program changes; NaN where it changes none."""
    changes = (expected != right) & (expected != NO_ANSWER)
    return float((answers == expected)[changes].mean()) if changes.any() else float("nan")


def _pairs(
    task: Task, ids: Ids, seed: int
) -> tuple[Int[np.ndarray, "pair pos"], Int[np.ndarray, "pair pos"], Bool[np.ndarray, "pair pos"]]:
    """Inputs, others, and at which positions a node is taken from these: at all, and at a single one, in turn."""
    random = rng(seed, "implementation accuracy")
    base, source = (ids[random.integers(0, len(ids), N_PAIRS)] for _ in range(2))
    taken = np.ones((N_PAIRS, task.n_ctx), dtype=bool)
    taken[1::2] = np.eye(task.n_ctx, dtype=bool)[random.integers(0, task.n_ctx, len(taken[1::2]))]
    return base, source, taken


def _patched_answers(
    hooked: HookedModel,
    task: Task,
    node: Node,
    base: Int[np.ndarray, "pair pos"],
    source: Int[np.ndarray, "pair pos"],
    taken: Bool[np.ndarray, "pair pos"],
    offset: int,
    held: Sequence[Node] = (),
) -> Int[np.ndarray, "pair loss_pos"]:
    """The model's answers on the base with a node as it is on the source, at some positions.

    Nodes that are held give what they give on the base as it is. With an offset of 1, inputs are read behind a
    BOS, the model's last token, at which nothing is taken.
    """
    bos = (hooked.cfg.d_vocab - 1,) * offset
    base, source = (behind(bos, ids) for ids in (base, source))
    where = torch.as_tensor(np.pad(taken, ((0, 0), (offset, 0))))[..., None]
    with torch.no_grad():
        of_source = hooked.run_with_cache(torch.as_tensor(source), names_filter=node.point)[1]
        hooks = [_set(node, of_source[node.point], where)]
        if held:
            of_base = hooked.run_with_cache(torch.as_tensor(base))[1]
            hooks += [_set(other, of_base[other.point], torch.ones_like(where)) for other in held]
        logits = hooked.run_with_hooks(torch.as_tensor(base), fwd_hooks=hooks)
    return task.codes(logits[:, offset:][:, list(task.loss_positions)].numpy())


def _set(node: Node, given: torch.Tensor, where: torch.Tensor) -> tuple[str, Callable[..., torch.Tensor]]:
    """The hook that makes a node give something else, at some positions: `[pair, ctx, 1]`."""

    def take(value: torch.Tensor, hook: object) -> torch.Tensor:
        if not node.is_head:
            return torch.where(where, given, value)
        edited = value.clone()
        edited[:, :, node.head] = torch.where(where, given[:, :, node.head], value[:, :, node.head])
        return edited

    return node.point, take


def program_answers(
    compiled: CompiledModel,
    task: Task,
    part: Part,
    base: Int[np.ndarray, "pair pos"],
    source: Int[np.ndarray, "pair pos"],
    taken: Bool[np.ndarray, "pair pos"],
) -> Int[np.ndarray, "pair loss_pos"]:
    """The program's answers with a part's variables as they are on the source; `NO_ANSWER` where it has none."""
    model, theirs = compiled.transformer, {}
    where = np.pad(taken, ((0, 0), (compiled.offset, 0)))[..., None]

    def keep(name: str, value: np.ndarray) -> np.ndarray:
        if name == part.point:
            theirs[name] = value
        return value

    def take(name: str, value: np.ndarray) -> np.ndarray:
        if name != part.point:
            return value
        if not part.heads:
            return np.where(where, theirs[name], value)
        edited = value.copy()
        for head in part.heads:
            edited[:, :, head] = np.where(where, theirs[name][:, :, head], value[:, :, head])
        return edited

    def logits(ids: np.ndarray, hook: Hook) -> np.ndarray:
        return forward(model.weights, model.mask, model.config, compiled.with_bos(ids), hook, per_head=False)

    logits(source, keep)
    read = logits(base, take)[:, compiled.offset :][:, list(task.loss_positions)]
    output = compiled.variables[compiled.output]
    codes, errors = nearest(output, read)
    return np.where(errors > compiled.tolerance(output), NO_ANSWER, task.codes_of(compiled)[codes])
