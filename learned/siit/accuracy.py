"""How well a model implements a program: measured by interventions on its hook points, apart from any training.

The model runs in torch, its nodes are patched by hooks. What the program says is computed by the compiled model in
numpy, patched at the parts that stand for the node, with the same inputs.

Source: Gupta et al. 2024, "InterpBench" (arXiv 2407.14494): interchange-intervention accuracy and strict accuracy.
Theirs count all answers. Where a program's answers hardly depend on a variable, that is near 1 for any model. So
the answers that change are counted alone as well. A node of which no interchange changes an answer is not tested.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int

from rasplens.compile import CompiledModel
from rasplens.compile.variable import nearest
from rasplens.learned.siit.circuit import Circuit, CompiledPart, Node, nodes_of
from rasplens.model import HookedModel, Transformer
from rasplens.model.forward import ForwardPass, Hook
from rasplens.model.random_streams import rng
from rasplens.tasks import Task
from rasplens.tasks.answers import behind
from rasplens.tasks.task import NO_ANSWER, Ids

N_PAIRS = 1_000
"""Of held-out inputs, for each node."""

PUBLISHED_MARKS: Mapping[str, float] = MappingProxyType({"behaviour": 0.995, "interchange": 0.99, "strict": 0.99})
"""The accuracies that InterpBench measures, and what a model has to reach in them for its circuit to be known."""


@dataclass(frozen=True)
class ImplementationAccuracy:
    """Shares of right answers on held-out inputs, of those that the task asks for, each in [0, 1].

    Attributes:
        behaviour: Without any intervention.
        interchange: With one node of the circuit taken from another input; by node.
        strict: With one node outside of the circuit taken from another input: answers that stay right; by node.
        changed: As `interchange`, of the answers that the program changes; NaN where it changes none: the node is
            not tested, whatever `interchange` is.
        within: As `changed`, with all nodes outside of the circuit held at what they give on the input itself.
            Where this is lower, it is they that pass the interchange on: a dormant path beside the circuit, which
            the others do not see.
    """

    behaviour: float
    interchange: Mapping[str, float]
    strict: Mapping[str, float]
    changed: Mapping[str, float]
    within: Mapping[str, float]

    @property
    def untested(self) -> tuple[str, ...]:
        """The nodes of which no interchange changes an answer, such as of constants: nothing was measured."""
        return tuple(node for node, share in self.changed.items() if math.isnan(share))

    @property
    def least(self) -> dict[str, float]:
        """The smallest of each kind over all nodes; without kinds that no node has a share of."""
        least: dict[str, float] = {"behaviour": self.behaviour}
        for kind in ("interchange", "strict", "changed", "within"):
            if shares := [share for share in getattr(self, kind).values() if not math.isnan(share)]:
                least[kind] = min(shares)
        return least

    def reaches(self, marks: Mapping[str, float]) -> bool:
        """Whether the least share of each kind is at least its mark, as far as there is one."""
        least = self.least
        return all(least[kind] >= mark for kind, mark in marks.items() if kind in least)

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {value:.4f}" for name, value in self.least.items())
        return f"{shares}; not tested: {', '.join(self.untested)}" if self.untested else shares


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
    pairs = _pairs(ids, seed)
    nodes, right, asked = nodes_of(transformer.config), task.target(pairs.base), task.is_asked(pairs.base)
    model = _Patched(HookedModel(transformer), task, compiled.offset, pairs, nodes)
    rest = [node for node in nodes if node not in circuit]
    strict = {str(node): _share(model.answers(node) == right, asked) for node in rest}
    interchange, changed, within = {}, {}, {}
    for node, part in circuit.items():
        expected = program_answers(compiled, task, part, pairs.base, pairs.source, pairs.taken)
        known = asked & (expected != NO_ANSWER)
        changes = known & (expected != right)
        found = model.answers(node) == expected
        interchange[str(node)] = _share(found, known)
        changed[str(node)] = _share(found, changes)
        within[str(node)] = _share(model.answers(node, rest) == expected, changes)
    behaviour = _share(model.on(ids) == task.target(ids), task.is_asked(ids))
    return ImplementationAccuracy(behaviour, interchange, strict, changed, within)


def _share(found: Bool[np.ndarray, "pair loss_pos"], of: Bool[np.ndarray, "pair loss_pos"]) -> float:
    """How much of a selection is right; NaN of none."""
    return float(found[of].mean()) if of.any() else math.nan


class _Pairs(NamedTuple):
    """Inputs, others, and at which positions a node is taken from these."""

    base: Int[np.ndarray, "pair pos"]
    source: Int[np.ndarray, "pair pos"]
    taken: Bool[np.ndarray, "pair pos"]


def _pairs(ids: Ids, seed: int) -> _Pairs:
    """Pairs in which a node is taken at all positions, and at a single one, in turn."""
    random, n_pos = rng(seed, "implementation accuracy"), ids.shape[1]
    base, source = (ids[random.integers(0, len(ids), N_PAIRS)] for _ in range(2))
    taken = np.ones((N_PAIRS, n_pos), dtype=bool)
    taken[1::2] = np.eye(n_pos, dtype=bool)[random.integers(0, n_pos, len(taken[1::2]))]
    return _Pairs(base, source, taken)


@dataclass(frozen=True, eq=False)
class _Patched:
    """A model on the base of each pair, with nodes as they are on the source, or held as they are on the base.

    With an offset of 1, inputs are read behind a BOS, the model's last token, at which nothing is taken.
    """

    hooked: HookedModel
    task: Task
    offset: int
    pairs: _Pairs
    nodes: Sequence[Node]

    def on(self, ids: Ids) -> Int[np.ndarray, "input loss_pos"]:
        """The answers on inputs as they are."""
        with torch.no_grad():
            return self._read(self.hooked(self._behind_bos(ids)))

    def answers(self, node: Node, held: Sequence[Node] = ()) -> Int[np.ndarray, "pair loss_pos"]:
        """The answers with a node taken from the source at some positions, and others held at all."""
        where = torch.as_tensor(np.pad(self.pairs.taken, ((0, 0), (self.offset, 0))))[..., None]
        hooks = [_set(node, self._of_source[node.point], where)]
        hooks += [_set(other, self._of_base[other.point], torch.ones_like(where)) for other in held]
        with torch.no_grad():
            return self._read(self.hooked.run_with_hooks(self._behind_bos(self.pairs.base), fwd_hooks=hooks))

    @cached_property
    def _of_base(self) -> Mapping[str, torch.Tensor]:
        return self._given(self.pairs.base)

    @cached_property
    def _of_source(self) -> Mapping[str, torch.Tensor]:
        return self._given(self.pairs.source)

    def _given(self, ids: Ids) -> Mapping[str, torch.Tensor]:
        """Return the activations of all nodes, by hook point."""
        points = {node.point for node in self.nodes}
        with torch.no_grad():
            cache = self.hooked.run_with_cache(self._behind_bos(ids), names_filter=lambda name: name in points)[1]
        return cache.cache_dict

    def _behind_bos(self, ids: Ids) -> torch.Tensor:
        return torch.as_tensor(behind((self.hooked.cfg.d_vocab - 1,) * self.offset, ids))

    def _read(self, logits: torch.Tensor) -> Int[np.ndarray, "pair loss_pos"]:
        return self.task.codes(logits[:, self.offset :][:, list(self.task.loss_positions)].numpy())


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
    part: CompiledPart,
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
        run = ForwardPass(model.weights, model.mask, model.config, hook, per_head=False)
        return run.logits(compiled.with_bos(ids))

    logits(source, keep)
    read = logits(base, take)[:, compiled.offset :][:, list(task.loss_positions)]
    output = compiled.variables[compiled.output]
    codes, errors = nearest(output, read)
    return np.where(errors > compiled.tolerance(output), NO_ANSWER, task.codes_of(compiled)[codes])
