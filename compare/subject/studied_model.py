"""A model under comparison: hooked, with its positions and answers joined to the task's."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from rasplens.compare.subject.padding import arguments, is_own
from rasplens.compare.subject.vocabulary import (
    Padding,
    Vocabulary,
)
from rasplens.errors import RaspLensError
from rasplens.model.hook_points import EMBEDDED, act_name, layer_of
from rasplens.model.hooked import HookedModel
from rasplens.model.interventions import Subspace, TorchHook, of_each_head, whole
from rasplens.tasks import Task
from rasplens.tasks.task import NOT_ASKED, Ids, marked

BATCH = 512
"""Sequences that run at once, at most."""

MOST_LOGITS: Final = 1 << 26
"""Of all positions of these, before those of the answers are taken: a language model has many."""

FEW = 4
"""If fewer than one in this many inputs is needed, an activation is computed on those inputs only."""

FwdHook = tuple[str, Callable[..., torch.Tensor]]
Head = tuple[int, int]
"""A head as (layer, index)."""


Rows = slice | Int[np.ndarray, " row"]
"""Indices of some of a model's inputs."""

ALL: Final = slice(None)


def named(heads: Iterable[Head]) -> str:
    """Heads in words, such as L0H1+L1H0."""
    return "+".join(f"L{layer}H{head}" for layer, head in heads)


@dataclass(frozen=True, eq=False)
class StudiedModel:
    """A hooked model and a batch of a task's inputs.

    Everything is read and edited by TransformerLens's hook names, never through weights, so that the model may
    be anything that is hooked in its vocabulary: a `HookedModel` or a `TransformerBridge`.

    Attributes:
        model: The model: a torch module with `run_with_hooks`, `run_with_cache`, `hook_dict` and `cfg`.
        task: What it is asked.
        ids: The inputs, as the task's ids.
        vocabulary: The model's vocabulary for the task.
        heads: The heads that compute something; a compiled model may have unused ones.
        padding: How the model takes the task's padding.
        read: Which of the model's logits are read, in the order of the vocabulary's columns; None for all.
    """

    model: Any
    task: Task
    ids: Ids
    vocabulary: Vocabulary
    heads: tuple[Head, ...]
    padding: Padding = "token"
    read: Int[np.ndarray, " logit"] | None = None

    @cached_property
    def tokens(self) -> torch.Tensor:
        """The inputs as the model takes them: `[input, ctx]`."""
        return torch.as_tensor(self.vocabulary.tokens(self.ids))

    @cached_property
    def seen(self) -> Int[torch.Tensor, "input ctx"]:
        """1 for the model's positions that are no padding of the task's."""
        seen = torch.ones(self.tokens.shape, dtype=torch.long)
        seen[:, self.places] = torch.as_tensor(is_own(self.task, self.ids)).long()
        return seen

    def arguments(self, rows: Rows = ALL) -> dict[str, torch.Tensor]:
        """Return the model's arguments beside tokens, on some inputs: the mask, where padding is hidden."""
        return arguments(self.padding, self.seen[rows]) if self.padding != "token" else {}

    @cached_property
    def targets(self) -> Int[np.ndarray, "input answer"]:
        """The right answers of the task, as its codes; `NOT_ASKED` where it asks for none."""
        return self.task.target(self.ids)

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return len(self.ids)

    @property
    def n_pos(self) -> int:
        """The number of the task's positions."""
        return len(self.vocabulary.positions)

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return self.model.cfg.n_layers

    def at(self, position: int) -> int:
        """The model's position of one of the task's."""
        return self.vocabulary.positions[position]

    @cached_property
    def places(self) -> slice | list[int]:
        """The model's positions of the task's: a slice, which copies nothing, where they follow one another."""
        first, last = self.vocabulary.positions[0], self.vocabulary.positions[-1] + 1
        return slice(first, last) if last - first == self.n_pos else list(self.vocabulary.positions)

    @property
    def answer_places(self) -> list[int]:
        """The model's positions at which the task's answers are read."""
        return [self.at(position) for position in self.task.loss_positions]

    @cached_property
    def attending_layers(self) -> list[int]:
        """The layers of which some head computes something."""
        return sorted({layer for layer, _ in self.heads})

    def heads_of(self, layer: int) -> list[int]:
        """The heads of a layer that compute something."""
        return [head for of_layer, head in self.heads if of_layer == layer]

    @property
    def residual_points(self) -> list[str]:
        """The hook points of the residual stream, in forward order, each state once."""
        points = [EMBEDDED]
        for layer in range(self.n_layers):
            points += [act_name(f"resid_{state}", layer) for state in ("mid", "post")]
        return [point for point in points if point in self.model.hook_dict]

    @property
    def output_points(self) -> list[str]:
        """The hook points of what the heads and the MLP of each layer write together, in forward order."""
        parts = ("attn_out", "mlp_out")
        points = [act_name(part, layer) for layer in range(self.n_layers) for part in parts]
        return [point for point in points if point in self.model.hook_dict]

    def on(self, ids: Ids) -> "StudiedModel":
        """Return the model on other inputs; itself on its own, with what is known of them."""
        return self if ids is self.ids else replace(self, ids=ids)

    def first(self, n: int) -> "StudiedModel":
        """Return the model on the first inputs only."""
        return self if n >= self.n_inputs else self.on(self.ids[:n])

    def with_answers(self, most: int) -> "StudiedModel":
        """Return the model on the first of its inputs, as many as have so many answers together, at least two."""
        return self.first(max(2, most // self.targets.shape[1]))

    def residual(self, point: str) -> Float[np.ndarray, "input pos d_model"]:
        """The residual stream at the task's positions."""
        return self.whole(point)[:, self.places]

    def activation(self, point: str, rows: Rows = ALL) -> Float[np.ndarray, "row pos width"]:
        """Return the activation at a hook point, at the task's positions; heads stand side by side.

        Args:
            point: Of the activation.
            rows: On which inputs; where these are few, it is computed on no others.
        """
        few, places = (None, rows) if isinstance(rows, slice) else np.unique(rows, return_inverse=True)
        if few is None or point in self._known or len(few) * FEW > self.n_inputs:
            found = self.whole(point)[rows]
        else:
            found = self.on(self.ids[few]).cache([point])[point][places]
        return found.reshape(*found.shape[:2], -1)[:, self.places]

    def width(self, point: str) -> int:
        """How wide an activation is that lies along the stream, or is what the heads of a layer gather."""
        cfg = self.model.cfg
        return cfg.n_heads * cfg.d_head if point.endswith("attn.hook_z") else cfg.d_model

    def heads_subspace(self, heads: Iterable[int]) -> Subspace:
        """Return what some heads of a layer have of an activation in which all of them stand side by side."""
        d_head = self.model.cfg.d_head
        directions = [i for head in heads for i in range(head * d_head, (head + 1) * d_head)]
        return whole(self.model.cfg.n_heads * d_head, directions)

    def pattern(self, layer: int) -> Float[np.ndarray, "input head query key"]:
        """Attention between the task's positions: what other positions get is left out."""
        return self.whole_pattern(layer)[:, :, self.places][..., self.places]

    def whole_pattern(self, layer: int) -> Float[np.ndarray, "input head ctx ctx"]:
        """Attention between all of the model's positions."""
        return self.whole(act_name("pattern", layer))

    def whole_residual(self, layer: int) -> Float[np.ndarray, "input ctx d_model"]:
        """The residual stream before a layer, at all of the model's positions."""
        return self.whole(EMBEDDED if layer == 0 else act_name("resid_post", layer - 1))

    def whole_values(self, layer: int) -> Float[np.ndarray, "input ctx head d_head"]:
        """The values of each head of a layer, at all of the model's positions; shared ones once for each."""
        return of_each_head(self.whole(act_name("v", layer)), self.model.cfg.n_heads, np)

    def whole_gathered(self, layer: int) -> Float[np.ndarray, "input ctx head d_head"]:
        """Return `z`, what each head of a layer gathers, at all of the model's positions."""
        return self.whole(act_name("z", layer))

    def whole(self, point: str) -> Float[np.ndarray, "input ctx ..."]:
        """Return the unedited activation at a hook point, at all of the model's positions; it is computed once."""
        if point not in self._known:
            self._known.update(self.cache(self._read_with(point)))
        return self._known[point]

    def logits(self, hooks: Sequence[FwdHook] = (), rows: Rows = ALL) -> Float[np.ndarray, "row answer logit"]:
        """The logits at the answer positions on some inputs, while hooks edit the model."""
        with torch.no_grad():
            return self.run(hooks, rows).cpu().numpy()

    def run(self, hooks: Sequence[FwdHook] = (), rows: Rows = ALL) -> Float[torch.Tensor, "row answer logit"]:
        """`logits` as a tensor through which gradients flow.

        Layers before the first edit are not run again.
        """
        if not isinstance(self.model, HookedModel):
            whole = [part for point, function in hooks for part in _whole(point, self._brought(function))]
            logits = self._pass(self.tokens[rows], whole, **self.arguments(rows))[:, self.answer_places]
            return (logits if self.read is None else logits[..., self.read]).cpu()
        start, residual, rest = self._start(hooks, rows)
        edits = [(point, self._brought(function)) for point, function in rest]
        if residual is None:
            return self._pass(self.tokens[rows], edits)[:, self.answer_places].cpu()
        if start == self.n_layers and not edits:  # nothing passes between positions any more
            return self._pass(residual[:, self.answer_places], start_at_layer=start).cpu()
        return self._pass(residual, edits, start_at_layer=start)[:, self.answer_places].cpu()

    def run_behind(
        self,
        layer: int,
        residual: Float[torch.Tensor, "batch ctx d_model"],
        gathered: Float[torch.Tensor, "batch ctx head d_head"],
    ) -> Float[torch.Tensor, "batch ctx logit"]:
        """Logits of a `HookedModel` that goes on behind a layer's attention, from what its heads gather."""
        return self.model.forward_from(layer, residual.to(self.device), gathered.to(self.device)).cpu()

    @cached_property
    def device(self) -> torch.device:
        """Where the model is, and what is edited. Inputs go there; the logits that are read come back."""
        return next(self.model.parameters()).device

    def _pass(self, inputs: torch.Tensor, hooks: Sequence[FwdHook] = (), **options: Any) -> torch.Tensor:
        """All logits, where the model is."""
        there = {name: one.to(self.device) if torch.is_tensor(one) else one for name, one in options.items()}
        logits: torch.Tensor = self.model.run_with_hooks(inputs.to(self.device), fwd_hooks=list(hooks), **there)
        return logits

    def _brought(self, function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """A hook that is no intervention, and works on the processor: activations come to it, and go back."""
        if isinstance(function, TorchHook) or self.device.type == "cpu":
            return function
        return lambda value, hook: function(value.cpu(), hook).to(value.device)

    def _start(self, hooks: Sequence[FwdHook], rows: Rows) -> tuple[int, torch.Tensor | None, list[FwdHook]]:
        """The layer before which a pass with hooks starts, the residual stream there, and the hooks that are left.

        That is before the first layer with a hook; behind it, if nothing is edited but what it leaves.
        """
        first = min((layer_of(point) for point, _ in hooks), default=0)
        behind = act_name("resid_post", first)
        here = [(point, function) for point, function in hooks if layer_of(point) == first]
        if here and all(point == behind for point, _ in here):
            left = torch.as_tensor(self.whole(behind)[rows])
            for _, function in here:
                left = function(left, self.model.hook_dict[behind])
            return first + 1, left, [hook for hook in hooks if layer_of(hook[0]) != first]
        return first, torch.as_tensor(self.whole_residual(first)[rows]) if first else None, list(hooks)

    @cached_property
    def clean_logits(self) -> Float[np.ndarray, "input answer logit"]:
        """The logits at the answer positions, unedited."""
        return np.concatenate([self.logits(rows=batch) for batch in self._batches])

    def answers(self) -> Int[np.ndarray, "input answer"]:
        """The model's answers, unedited, as the task's codes."""
        return self.codes(self.clean_logits)

    def codes(
        self, logits: Float[np.ndarray, "row answer logit"], rows: Rows = ALL
    ) -> Int[np.ndarray, "row answer"]:
        """The answers that logits on some inputs stand for; `NOT_ASKED` where the task asks for none."""
        return np.where(self.asked[rows], self.vocabulary.codes(logits), NOT_ASKED)

    @cached_property
    def asked(self) -> Bool[np.ndarray, "input answer"]:
        """Which answers the task asks for."""
        return self.task.is_asked(self.ids)

    def given(self, ids: Ids) -> Int[np.ndarray, "input answer"]:
        """The model's answers on other inputs, also where the task asks for none."""
        return self.vocabulary.codes(self.on(ids).clean_logits)

    def right(self) -> np.ma.MaskedArray:
        """Which of the model's answers are right, unedited: `[input, answer]`; masked where none is asked."""
        return marked(self.answers(), self.targets)

    def edited_answers(self, hooks: Sequence[FwdHook]) -> Int[np.ndarray, "input answer"]:
        """The model's answers while hooks edit it; they see the inputs in batches."""
        return self.codes(np.concatenate([self.logits(hooks, batch) for batch in self._batches]))

    def edited_accuracy(self, hooks: Sequence[FwdHook]) -> float:
        """Token accuracy while hooks edit the model."""
        return float(marked(self.edited_answers(hooks), self.targets).mean())

    @property
    def batch(self) -> int:
        """How many sequences run at once."""
        of_each = self.tokens.shape[1] * self.model.cfg.d_vocab
        return max(1, min(BATCH, MOST_LOGITS // of_each))

    @property
    def _batches(self) -> list[slice]:
        return [slice(start, start + self.batch) for start in range(0, self.n_inputs, self.batch)]

    @cached_property
    def _known(self) -> dict[str, np.ndarray]:
        return {}

    def _read_with(self, point: str) -> list[str]:
        """The hook points that one pass reads together: what is asked of one is asked of the others."""
        layers = range(self.n_layers)
        groups = [
            self.residual_points,
            [act_name(name, layer) for name in ("pattern", "z") for layer in layers],
            self.output_points,
            *([act_name(letter, layer) for layer in layers] for letter in "qkv"),
        ]
        return next((group for group in groups if point in group), [point])

    def cache(self, points: Iterable[str]) -> dict[str, np.ndarray]:
        """Activations at some hook points, at all of the model's positions, unedited.

        Raises:
            RaspLensError: If nothing passes one of them.
        """
        wanted = list(points)
        parts: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
        with torch.no_grad():
            for rows in self._batches:
                batch = self.tokens[rows].to(self.device)
                beside = {name: value.to(self.device) for name, value in self.arguments(rows).items()}
                _, cache = self.model.run_with_cache(batch, names_filter=wanted, **beside)
                if missed := [name for name in wanted if name not in cache]:
                    raise RaspLensError(f"Nothing passes the model's hook point {missed[0]!r}.")
                for name in wanted:
                    parts[name].append(cache[name].cpu().numpy())
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _whole(point: str, function: Callable[..., torch.Tensor]) -> list[FwdHook]:
    """An edit of a bridge that reaches all that reads the stream.

    A bridge calls what its MLP reads `hook_resid_mid`: what is changed there passes by the rest of the stream, and
    is added to it behind the MLP.
    """
    if not point.endswith("hook_resid_mid"):
        return [(point, function)]
    changes: list[torch.Tensor] = []

    def edit(stream: torch.Tensor, hook: object) -> torch.Tensor:
        edited = function(stream, hook)
        changes.append(edited - stream)
        return edited

    def add(stream: torch.Tensor, hook: object) -> torch.Tensor:
        return stream + changes.pop()

    return [(point, edit), (point.replace("mid", "post"), add)]
