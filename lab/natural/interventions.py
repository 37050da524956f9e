"""Interventions on the edges of a trained model, by hooks: other patterns, keys, queries and values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from rasplens.compile import CompiledModel
from rasplens.model import HasTransformer
from rasplens.model.hook_points import act_name
from rasplens.model.hooked import HookedModel
from rasplens.tasks import Task

Tensor = torch.Tensor


@dataclass(frozen=True, eq=False)
class Patch:
    """Keys, queries or values from other inputs along some edges, in every head of a layer.

    Attributes:
        edges: Boolean `[input, query, key]`.
        source: Those of the other inputs: `[input, pos, head, d_head]`.
    """

    edges: Tensor
    source: Tensor


@dataclass(frozen=True, eq=False)
class LayerEdit:
    """The changes to the attention of a layer.

    Attributes:
        pattern: What every head's pattern is overwritten with: `[input, head, query, key]`.
        keys: Keys of other inputs; scores along these edges are computed with the base's queries.
        queries: Queries of other inputs; scores along these edges are computed with the base's keys.
        values: Values of other inputs; patterns stay.
    """

    pattern: Tensor | None = None
    keys: Patch | None = None
    queries: Patch | None = None
    values: Patch | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """A model on a task.

    Attributes:
        task: The task.
        model: The model with its hooks.
        compiled: What it was compiled to, if it was; a trained model's logits stand for the task's answers.
    """

    task: Task
    model: HookedModel = field(repr=False)
    compiled: CompiledModel | None = None

    @classmethod
    def of(cls, task: Task, model: HasTransformer) -> "Subject":
        """A model as a subject of interventions."""
        return cls(task, HookedModel(model), model if isinstance(model, CompiledModel) else None)

    @property
    def n_layers(self) -> int:
        """Its layers."""
        return self.model.cfg.n_layers

    @property
    def offset(self) -> int:
        """How many positions stand before the input's: one, if the model was compiled with a BOS."""
        return 0 if self.compiled is None else self.compiled.offset

    def observe(self, ids: np.ndarray) -> Mapping[tuple[int, str], Tensor]:
        """What attention reads and does on inputs, by layer and what: "q", "k", "v", "attn_scores", "pattern"."""
        points = ("q", "k", "v", "attn_scores", "pattern")
        places = [(layer, point) for layer in range(self.n_layers) for point in points]
        names = {act_name(place[1], place[0]) for place in places}
        with torch.no_grad():
            _, cache = self.model.run_with_cache(self._encoded(ids), names_filter=lambda name: name in names)
        return {place: cache[act_name(place[1], place[0])] for place in places}

    def answers(self, ids: np.ndarray, edits: Mapping[int, LayerEdit] | None = None) -> np.ndarray:
        """The codes of its answers, `[input, loss_pos]`, with the attention of some layers edited."""
        hooks = [hook for layer, edit in (edits or {}).items() for hook in self._hooks(layer, edit)]
        with torch.no_grad():
            logits = self.model.run_with_hooks(self._encoded(ids), fwd_hooks=hooks)
        read = logits[:, [self.offset + place for place in self.task.loss_positions]].numpy()
        if self.compiled is None:
            return read.argmax(axis=-1)
        result = self.compiled.variables[self.compiled.output]
        return self.task.codes_of(self.compiled)[result.decode(read, tolerance=np.inf)]

    def right(self, ids: np.ndarray, edits: Mapping[int, LayerEdit] | None = None) -> np.ndarray:
        """Which answers are right, with the attention of some layers edited: boolean `[input, loss_pos]`."""
        return self.answers(ids, edits) == self.task.target(ids)

    def _encoded(self, ids: np.ndarray) -> Tensor:
        return torch.as_tensor(ids if self.compiled is None else self.compiled.with_bos(ids))

    def _rescored(self, scores: Tensor, patch: Patch, queries: Tensor, keys: Tensor) -> Tensor:
        crossed = torch.einsum("bqhd,bkhd->bhqk", queries, keys) / self.model.cfg.attn_scale
        return torch.where(patch.edges[:, None] & torch.isfinite(scores), crossed, scores)

    def _hooks(self, layer: int, edit: LayerEdit) -> list[tuple[str, Callable[..., Tensor | None]]]:
        seen: dict[str, Tensor] = {}

        def keep(name: str) -> Callable[..., None]:
            def store(value: Tensor, hook: object) -> None:
                seen[name] = value

            return store

        def score(value: Tensor, hook: object) -> Tensor:
            if edit.keys is not None:
                value = self._rescored(value, edit.keys, seen["q"], edit.keys.source)
            if edit.queries is not None:
                value = self._rescored(value, edit.queries, edit.queries.source, seen["k"])
            return value

        def attend(value: Tensor, hook: object) -> Tensor:
            seen["pattern"] = value if edit.pattern is None else edit.pattern
            return seen["pattern"]

        def gather(value: Tensor, hook: object) -> Tensor:
            if edit.values is None:
                return value
            edges, pattern = edit.values.edges[:, None], seen["pattern"]
            own = torch.einsum("bhqk,bkhd->bqhd", pattern * ~edges, seen["v"])
            return own + torch.einsum("bhqk,bkhd->bqhd", pattern * edges, edit.values.source)

        points = {**{name: keep(name) for name in "qkv"}, "attn_scores": score, "pattern": attend, "z": gather}
        return [(act_name(point, layer), function) for point, function in points.items()]
