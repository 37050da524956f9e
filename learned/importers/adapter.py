"""Any torch module as a hooked model: its parts under TransformerLens's names."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint

from rasplens.errors import RaspLensError
from rasplens.learned.importers.adapter_checks import (
    OF_HEADS,
    check_complete,
    check_consistent,
    check_live,
    check_logits,
    check_names,
    check_runs_once,
    check_shape,
)
from rasplens.model.hook_points import act_name
from rasplens.model.hooked import attach

LAYER = "{layer}"
"""Stands for the number of a layer in the names of hook points and modules."""

N_PROBES = 4
"""Random inputs on which hook points are checked."""

_PLACE = re.compile(r"(?P<path>[^:]*)(:(?P<side>input|output))?(:(?P<part>\d+)/(?P<parts>\d+))?")

Edit = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class AdaptedConfig:
    """The sizes of an adapted model, in TransformerLens's words."""

    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    n_ctx: int
    d_vocab: int
    d_vocab_out: int


class AdaptedModel(HookedRootModule):
    """A torch module with hook points of TransformerLens's names. `adapt` makes and checks it.

    The module itself is not changed: its parts are watched only while it runs.

    Attributes:
        cfg: Its sizes.
        module: The module.
    """

    cfg: AdaptedConfig

    def __init__(self, module: torch.nn.Module, places: Mapping[str, "_Place"], n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.places = dict(places)
        for name in places:
            attach(self, name, HookPoint())
        self.setup()
        self.add_module("module", module)  # behind setup, which names all modules it sees

    def forward(self, tokens: Int[torch.Tensor, "batch pos"]) -> Float[torch.Tensor, "batch pos d_vocab_out"]:
        """Logits; of a module that returns several things the first, or what is called `logits`."""
        with self._watched():
            return _first(self.get_submodule("module")(tokens))

    def __repr__(self) -> str:
        kind = type(self.get_submodule("module")).__name__
        return f"AdaptedModel({kind}, {len(self.hook_dict)} hook points, {getattr(self, 'cfg', 'not checked')})"

    @contextmanager
    def _watched(self) -> Iterator[None]:
        with ExitStack() as stack:
            for name, place in self.places.items():
                handle = place.watch(self.get_submodule("module"), self._through(name))
                stack.callback(handle.remove)
            yield

    def _through(self, name: str) -> Edit:
        """Return the edit that a hook point makes; heads that stand side by side get an axis of their own."""
        point: Any = self.hook_dict[name]

        def pass_through(value: torch.Tensor) -> torch.Tensor:
            if OF_HEADS.search(name) and value.ndim == 3:
                if value.shape[-1] % self.n_heads:
                    raise RaspLensError(
                        f"The activation at {name} is {value.shape[-1]} wide, which {self.n_heads} heads cannot "
                        "divide evenly."
                    )
                return point(value.unflatten(-1, (self.n_heads, -1))).flatten(-2)
            return point(value)

        return pass_through


@dataclass(frozen=True)
class _Place:
    """Where an activation is found: what goes into a module or comes out of it, or a part of that.

    Attributes:
        path: The module.
        is_input: Whether it is what goes in.
        part: Which part of the last axis.
        parts: In how many equal parts the last axis is cut.
    """

    path: str
    is_input: bool
    part: int
    parts: int

    def watch(self, module: torch.nn.Module, edit: Edit) -> Any:
        """Lets an activation go through `edit` whenever the module runs; returns a handle that ends it."""
        watched = module.get_submodule(self.path)
        if self.is_input:
            return watched.register_forward_pre_hook(
                lambda _, inputs, named: self._taken(inputs, named, edit), with_kwargs=True
            )
        return watched.register_forward_hook(lambda _, __, output: self._first_edited(output, edit))

    def _taken(self, inputs: tuple[Any, ...], named: dict[str, Any], edit: Edit) -> Any:
        """Edit the arguments of a module: the first by place, or the first tensor of those by name."""
        if inputs:
            return self._first_edited(inputs, edit), named
        name = next((name for name, value in named.items() if isinstance(value, torch.Tensor)), None)
        return inputs, named if name is None else {**named, name: self._edited(named[name], edit)}

    def _first_edited(self, found: Any, edit: Edit) -> Any:
        """Edit the first of the values that a module takes or gives."""
        if isinstance(found, tuple):
            return (self._edited(found[0], edit), *found[1:])
        return self._edited(found, edit)

    def _edited(self, value: torch.Tensor, edit: Edit) -> torch.Tensor:
        if self.parts == 1:
            return edit(value)
        chunks = list(value.chunk(self.parts, dim=-1))
        chunks[self.part] = edit(chunks[self.part])
        return torch.cat(chunks, dim=-1)


def adapt(
    module: torch.nn.Module, hooks: Mapping[str, str], *, n_heads: int, n_ctx: int, d_vocab: int
) -> AdaptedModel:
    """Any torch module as a hooked model, which `compare` takes.

    Args:
        module: From token ids `[batch, pos]` to logits `[batch, pos, d_vocab_out]`, in eval mode.
        hooks: From the names of hook points to places in the module: the path of a submodule whose output it is
            (`"h.0.attn.dropout"`), `:input` for what goes in, `:1/3` for the second third of the last axis.
            `{layer}` stands for the number of each layer on both sides. Comparisons need `hook_resid_pre` of layer
            0, and of every layer `hook_resid_post`, `attn.hook_pattern` and `attn.hook_z`; and, for some of the
            evidence, `attn.hook_q`, `attn.hook_k` and `attn.hook_v`. Claims on routes need those and
            `attn.hook_attn_scores`, which is what goes into the softmax: it has to be a module of its own.
        n_heads: Heads per layer.
        n_ctx: The longest sequence.
        d_vocab: The number of token ids.

    Raises:
        RaspLensError: If a module or a hook point is missing, or one is not live: nothing passes it, what passes
            has another shape or is no attention pattern, an edit there does not reach the logits, it runs several
            times, `hook_z` is not what the pattern gathers of `hook_v`, queries and keys are swapped, or one layer
            does not begin where the one before it ends. If the module does not run on such tokens in float32.
    """
    check_names(hooks)
    if module.training and any(isinstance(part, torch.nn.Dropout) and part.p > 0 for part in module.modules()):
        raise RaspLensError(
            "The model is in training mode: its dropout makes answers random. Call its eval() first."
        )
    places = _places(module, hooks)
    layers = {int(match.group(1)) for name in places if (match := re.match(r"blocks\.(\d+)\.", name))}
    check_complete(places, layers)
    adapted = AdaptedModel(module, places, n_heads)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(d_vocab, (N_PROBES, n_ctx), generator=generator)
    with torch.no_grad():
        plain = _logits(module, tokens, d_vocab)
        check_logits(plain, tokens)
        values = _activations(adapted, tokens)
        check_runs_once(adapted, {name: place.path for name, place in places.items()}, tokens)
        for name, value in values.items():
            check_shape(name, value, tokens, n_heads)
            check_live(adapted, name, places[name].path, tokens, plain, generator)
        check_consistent(values, n_heads)
    adapted.cfg = AdaptedConfig(
        n_layers=len(layers),
        n_heads=n_heads,
        d_model=values[act_name("resid_post", 0)].shape[-1],
        d_head=values[act_name("z", 0)].shape[-1],
        n_ctx=n_ctx,
        d_vocab=d_vocab,
        d_vocab_out=plain.shape[-1],
    )
    return adapted


def _logits(module: torch.nn.Module, tokens: torch.Tensor, d_vocab: int) -> Any:
    """Return a module's output for token ids.

    Raises:
        RaspLensError: If it does not take them.
    """
    if half := {one.dtype for one in module.parameters()} & {torch.float16, torch.bfloat16}:
        raise RaspLensError(f"The model's weights are {half.pop()}; call its float() first.")
    try:
        found = module(tokens)
    except Exception as error:  # a user's module may raise anything
        first = str(error).strip().split("\n")[0]
        raise RaspLensError(
            f"The model does not run on {tokens.shape[1]} token ids below {d_vocab} (n_ctx, d_vocab): "
            f"{type(error).__name__}: {first}"
        ) from error
    return _first(found)


def _first(found: Any) -> Any:
    """The logits of what a module returns: of several things the first, or what is called so."""
    return found[0] if isinstance(found, tuple) else getattr(found, "logits", found)


def _places(module: torch.nn.Module, hooks: Mapping[str, str]) -> dict[str, _Place]:
    """By hook point, where it is; those of all layers, one by one."""
    known = dict(module.named_modules())
    found = {}
    for name, place in hooks.items():
        n_layers = _n_layers(known, place) if LAYER in place else 1
        for layer in range(n_layers):
            one = place.replace(LAYER, str(layer))
            if (match := _PLACE.fullmatch(one)) is None:
                raise RaspLensError(
                    f"{place!r} is not a place. Write a module's path, then :input or a part such as :0/3."
                )
            if match["path"] not in known:
                raise RaspLensError(
                    f"The model has no module {match['path']!r} for {name}. It has {_some(known)}."
                )
            part, parts = int(match["part"] or 0), int(match["parts"] or 1)
            if not part < parts:
                raise RaspLensError(f"{place!r}: parts are counted from 0, so there is no part {part} of {parts}.")
            found[name.replace(LAYER, str(layer))] = _Place(match["path"], match["side"] == "input", part, parts)
    return found


def _n_layers(known: Mapping[str, Any], place: str) -> int:
    """How many layers there are, by the modules that exist."""
    path, n_layers = place.partition(":")[0], 0
    while path.replace(LAYER, str(n_layers)) in known:
        n_layers += 1
    if not n_layers:
        raise RaspLensError(f"The model has no module {path.replace(LAYER, '0')!r}. It has {_some(known)}.")
    return n_layers


def _some(known: Mapping[str, Any]) -> str:
    names = [name for name in known if name]
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


def _activations(adapted: AdaptedModel, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the activation at each hook point.

    Raises:
        RaspLensError: If a hook point has none.
    """
    _, cache = adapted.run_with_cache(tokens)
    for name, place in adapted.places.items():
        if not isinstance(cache.get(name), torch.Tensor):
            raise RaspLensError(
                f"{name} is not live: {place.path} does not run, or passes no tensor. If attention is fused, use "
                "a version that computes its pattern."
            )
    return {name: cache[name] for name in adapted.places}
