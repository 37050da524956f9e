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
from rasplens.model.hooked import attach

LAYER = "{layer}"
"""Stands for the number of a layer in the names of hook points and modules."""

N_PROBES = 4
"""Random inputs on which hook points are checked."""

_OF_HEADS = re.compile(r"hook_([qkvz]|result)$")
_PATTERN = re.compile(r"hook_pattern$")
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
        """Logits; of a module that returns several things the first."""
        with self._watched():
            found = self.get_submodule("module")(tokens)
        return found[0] if isinstance(found, tuple) else found

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
        """What a hook point makes of a value; heads that stand side by side get an axis of their own."""
        point: Any = self.hook_dict[name]

        def pass_through(value: torch.Tensor) -> torch.Tensor:
            if _OF_HEADS.search(name) and value.ndim == 3:
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
            return watched.register_forward_pre_hook(lambda _, inputs: self._first_edited(inputs, edit))
        return watched.register_forward_hook(lambda _, __, output: self._first_edited(output, edit))

    def _first_edited(self, found: Any, edit: Edit) -> Any:
        """What a module takes or gives; of several values the first is edited."""
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
            evidence, `attn.hook_q`, `attn.hook_k` and `attn.hook_v`.
        n_heads: Heads per layer.
        n_ctx: The longest sequence.
        d_vocab: The number of token ids.

    Raises:
        RaspLensError: If a module is missing, or a hook point is not live: nothing passes it, what passes has
            another shape or is no attention pattern, an edit there does not reach the logits, or `hook_z` is not
            what the pattern gathers of `hook_v`, or one layer does not begin where the one before it ends.
    """
    if module.training and any(isinstance(part, torch.nn.Dropout) and part.p > 0 for part in module.modules()):
        raise RaspLensError(
            "The model is in training mode: its dropout makes answers random. Call its eval() first."
        )
    places = _places(module, hooks)
    adapted = AdaptedModel(module, places, n_heads)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(d_vocab, (N_PROBES, n_ctx), generator=generator)
    with torch.no_grad():
        plain = module(tokens)
        plain = plain[0] if isinstance(plain, tuple) else plain
        _check_logits(plain, tokens)
        values = _activations(adapted, tokens)
        for name, value in values.items():
            _check_shape(name, value, tokens, n_heads)
            _check_live(adapted, name, tokens, plain, generator)
        _check_consistent(values, n_heads)
    layers = {int(match.group(1)) for name in places if (match := re.match(r"blocks\.(\d+)\.", name))}
    stream = next((values[name] for name in values if "hook_resid" in name), None)
    if stream is None:
        raise RaspLensError(
            "No hook point of the residual stream is among them; comparisons need hook_resid_post."
        )
    of_heads = next((values[name] for name in values if name.endswith("hook_z")), None)
    adapted.cfg = AdaptedConfig(
        n_layers=len(layers),
        n_heads=n_heads,
        d_model=stream.shape[-1],
        d_head=stream.shape[-1] // n_heads if of_heads is None else of_heads.shape[-1],
        n_ctx=n_ctx,
        d_vocab=d_vocab,
        d_vocab_out=plain.shape[-1],
    )
    return adapted


def _places(module: torch.nn.Module, hooks: Mapping[str, str]) -> dict[str, _Place]:
    """By hook point, where it is; those of all layers, one by one."""
    known = dict(module.named_modules())
    found = {}
    for name, place in hooks.items():
        n_layers = _n_layers(known, place) if LAYER in place else 1
        for layer in range(n_layers):
            one = place.replace(LAYER, str(layer))
            if (match := _PLACE.fullmatch(one)) is None:
                raise RaspLensError(f"{place!r} is no place: a module's path, then :input or a part such as :0/3.")
            if match["path"] not in known:
                raise RaspLensError(
                    f"The model has no module {match['path']!r} for {name}. It has {_some(known)}."
                )
            part, parts = int(match["part"] or 0), int(match["parts"] or 1)
            if not part < parts:
                raise RaspLensError(f"{place!r}: parts are counted from 0, so there is no {part} of {parts}.")
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
    """What passes each hook point.

    Raises:
        RaspLensError: If nothing does.
    """
    _, cache = adapted.run_with_cache(tokens)
    for name, place in adapted.places.items():
        if not isinstance(cache.get(name), torch.Tensor):
            raise RaspLensError(
                f"{name} is not live: {place.path} does not run, or passes no tensor. If attention is fused, use "
                "a version that computes its pattern."
            )
    return {name: cache[name] for name in adapted.places}


def _check_logits(logits: Any, tokens: torch.Tensor) -> None:
    if not isinstance(logits, torch.Tensor) or logits.ndim != 3 or logits.shape[:2] != tokens.shape:
        found = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
        raise RaspLensError(f"The model must give logits [batch, pos, d_vocab_out]; it gives {found}.")


def _check_shape(name: str, value: torch.Tensor, tokens: torch.Tensor, n_heads: int) -> None:
    batch, pos = tokens.shape
    wanted: tuple[int, ...] = (batch, pos)
    if _PATTERN.search(name):
        wanted = (batch, n_heads, pos, pos)
    elif _OF_HEADS.search(name):
        wanted = (batch, pos, n_heads)
    if value.shape[: len(wanted)] != wanted:
        raise RaspLensError(
            f"What passes {name} must have a shape that begins {wanted}; it has {tuple(value.shape)}."
        )
    sums = value.sum(dim=-1)
    if _PATTERN.search(name) and not (torch.isclose(sums, sums.new_ones(()), atol=1e-3) | (sums == 0)).all():
        raise RaspLensError(f"What passes {name} is no attention pattern: its rows do not add up to 1.")


def _check_consistent(values: Mapping[str, torch.Tensor], n_heads: int) -> None:
    """Raises where heads gather something else than their pattern of their values, or the stream jumps."""
    for name, before in values.items():
        match = re.fullmatch(r"blocks\.(\d+)\.hook_resid_pre", name)
        behind = f"blocks.{int(match[1]) - 1}.hook_resid_post" if match else ""
        if behind in values and not _are_close(values[behind], before):
            raise RaspLensError(f"What passes {behind} is not what passes {name}: one of the two is elsewhere.")
    for name, gathered in values.items():
        attention = name.removesuffix("hook_z")
        if not name.endswith("hook_z") or not {f"{attention}hook_pattern", f"{attention}hook_v"} <= set(values):
            continue
        value = values[f"{attention}hook_v"].reshape(*gathered.shape[:2], n_heads, -1)
        expected = torch.einsum("bhqk,bkhd->bqhd", values[f"{attention}hook_pattern"], value)
        if not _are_close(gathered.reshape(expected.shape), expected):
            raise RaspLensError(
                f"What passes {name} is not what the pattern gathers of {attention}hook_v: one of the three is "
                "elsewhere, or the parts of queries, keys and values stand in another order."
            )


def _are_close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()))


def _check_live(
    adapted: AdaptedModel, name: str, tokens: torch.Tensor, plain: torch.Tensor, generator: torch.Generator
) -> None:
    """Raises if what a hook point gives does not reach the logits, or watching it alone changes them."""

    def edited(value: torch.Tensor, hook: object) -> torch.Tensor:
        return value + torch.randn(value.shape, generator=generator) * value.abs().max().clamp_min(1.0)

    if not torch.equal(adapted.run_with_hooks(tokens, fwd_hooks=[(name, lambda value, hook: value)]), plain):
        raise RaspLensError(f"The model's logits change from run to run, or when {name} is watched.")
    if torch.equal(adapted.run_with_hooks(tokens, fwd_hooks=[(name, edited)]), plain):
        raise RaspLensError(
            f"{name} is not live: an edit at {adapted.places[name].path} does not reach the logits."
        )
