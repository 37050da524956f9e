"""Whether the hook points of an adapted module are what their names say."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

import torch
from transformer_lens import HookedRootModule

from rasplens.errors import RaspLensError
from rasplens.model.hook_points import act_name

HOOK_NAMES = (
    "hook_embed",
    "hook_pos_embed",
    *(f"blocks.0.hook_{name}" for name in ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")),
    *(f"blocks.0.attn.hook_{name}" for name in ("q", "k", "v", "attn_scores", "pattern", "z", "result")),
    *(f"blocks.0.{name}.hook_{value}" for name in ("ln1", "ln2") for value in ("scale", "normalized")),
    *(f"blocks.0.mlp.hook_{name}" for name in ("pre", "post")),
    *(f"ln_final.hook_{value}" for value in ("scale", "normalized")),
)
"""TransformerLens's names; those of other layers have another number."""

OF_HEADS = re.compile(r"hook_([qkvz]|result)$")
BETWEEN_POSITIONS = re.compile(r"hook_(pattern|attn_scores)$")

NEEDED = ("resid_post", "pattern", "z")
"""The hook points of every layer that comparisons cannot do without."""

ALIKE = 0.85
"""Similarity from which an unknown name is taken for a misspelt hook point."""

SCORES_FIT = 0.01
"""The most of the variance of attention scores that queries times keys may leave unexplained."""

LOWEST = 1e-6
"""Attention below this says little of its score."""


def check_names(names: Iterable[str]) -> None:
    """Raises where a name is nearly one of TransformerLens's."""
    for name in names:
        plain = re.sub(r"blocks\.(\d+|\{layer\})\.", "blocks.0.", name)
        if plain in HOOK_NAMES:
            continue
        if near := difflib.get_close_matches(plain, HOOK_NAMES, n=1, cutoff=ALIKE):
            known = near[0].replace("0", "{layer}")
            raise RaspLensError(f"{name!r} is not a hook point that comparisons know. Did you mean {known!r}?")


def check_complete(names: Collection[str], layers: Collection[int]) -> None:
    """Raises unless there are the hook points that comparisons read and edit, in every layer."""
    if not layers:
        raise RaspLensError("`hooks` names no hook point of a layer, such as 'blocks.{layer}.hook_resid_post'.")
    of_layers = (act_name(name, layer) for layer in range(max(layers) + 1) for name in NEEDED)
    missing = next((name for name in chain([act_name("resid_pre", 0)], of_layers) if name not in names), None)
    if missing is not None:
        fused = "; of fused attention there is none, so switch that off" if "pattern" in missing else ""
        raise RaspLensError(f"`hooks` lacks {missing!r}, which comparisons read and edit{fused}.")


def check_runs_once(model: HookedRootModule, paths: Mapping[str, str], tokens: torch.Tensor) -> None:
    """Raises if a module runs several times in one pass.

    Args:
        model: The adapted model.
        paths: By hook point, the module that it watches.
        tokens: Inputs.
    """
    runs = dict.fromkeys(paths, 0)

    def count(value: torch.Tensor, hook: Any) -> torch.Tensor:
        runs[hook.name] += 1
        return value

    model.run_with_hooks(tokens, fwd_hooks=[(name, count) for name in paths])
    for name, n in runs.items():
        if n > 1:
            raise RaspLensError(
                f"{name}: {paths[name]} runs {n} times in one pass, as layers with tied weights do. Give each "
                "layer its own module (copy.deepcopy)."
            )


def check_logits(logits: Any, tokens: torch.Tensor) -> None:
    """Raises unless a module gives finite logits at every position."""
    if not isinstance(logits, torch.Tensor) or logits.ndim != 3 or logits.shape[:2] != tokens.shape:
        found = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
        raise RaspLensError(f"The model must return logits [batch, pos, d_vocab_out]; it returns {found}.")
    if not logits.isfinite().all():
        raise RaspLensError("The model's logits are not finite. Check its weights for NaN.")


def check_shape(name: str, value: torch.Tensor, tokens: torch.Tensor, n_heads: int) -> None:
    """Raises if an activation does not have the shape that its hook point's name promises."""
    batch, pos = tokens.shape
    wanted: tuple[int, ...] = (batch, pos)
    if BETWEEN_POSITIONS.search(name):
        wanted = (batch, n_heads, pos, pos)
    elif OF_HEADS.search(name):
        wanted = (batch, pos, n_heads)
    if value.shape[: len(wanted)] != wanted:
        raise RaspLensError(
            f"The activation at {name} must have a shape that starts with {wanted}; it has {tuple(value.shape)}."
        )
    sums = value.sum(dim=-1)
    is_share = torch.isclose(sums, sums.new_ones(()), atol=1e-3) | (sums == 0)
    if name.endswith("hook_pattern") and not is_share.all():
        raise RaspLensError(f"The activation at {name} is not an attention pattern: its rows do not sum to 1.")


def check_consistent(values: Mapping[str, torch.Tensor], n_heads: int) -> None:
    """Raises where the stream jumps, or heads do not attend or gather as their parts say."""
    for name, before in values.items():
        match = re.fullmatch(r"blocks\.(\d+)\.hook_resid_pre", name)
        behind = act_name("resid_post", int(match[1]) - 1) if match else ""
        if behind in values and not _are_close(values[behind], before):
            raise RaspLensError(
                f"The activations at {behind} and {name} must be equal: one of the two hooks is misplaced."
            )
    for name, pattern in values.items():
        if name.endswith("hook_pattern"):
            attention = name.removesuffix("hook_pattern")
            own = {
                end: value.unflatten(-1, (n_heads, -1)) if value.ndim == 3 else value
                for end in ("q", "k", "v", "z", "attn_scores")
                if (value := values.get(f"{attention}hook_{end}")) is not None
            }
            _check_head(attention, pattern, own)


def _check_head(attention: str, pattern: torch.Tensor, own: Mapping[str, torch.Tensor]) -> None:
    """Raises where a layer's heads attend or gather otherwise than their hook points say."""
    if {"z", "v"} <= set(own):
        gathered = torch.einsum("bhqk,bkhd->bqhd", pattern, own["v"])
        if not _are_close(own["z"], gathered):
            raise RaspLensError(
                f"The activation at {attention}hook_z must be hook_pattern times {attention}hook_v: one of the "
                "three hooks is misplaced, or queries, keys and values are stored in another order."
            )
    if "attn_scores" in own and not _are_close(pattern, own["attn_scores"].softmax(dim=-1).nan_to_num(0)):
        raise RaspLensError(
            f"The activation at {attention}hook_pattern must be the softmax of that at "
            f"{attention}hook_attn_scores."
        )
    if {"q", "k"} <= set(own) and own["q"].shape == own["k"].shape:
        as_named, swapped = (_left_over(pattern, own[one], own[other]) for one, other in ("qk", "kq"))
        if swapped < SCORES_FIT < as_named:
            raise RaspLensError(
                f"{attention}hook_q and {attention}hook_k are swapped: the first holds the keys, the second the "
                "queries."
            )


def _left_over(pattern: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> float:
    """Return the share of the scores, as the pattern shows them, that scaled queries times keys do not explain."""
    seen = pattern > LOWEST
    n_seen = seen.sum(dim=-1, keepdim=True).clamp_min(1)
    scores = pattern.clamp_min(LOWEST).log()
    products = torch.einsum("bqhd,bkhd->bhqk", query, key)
    # Differences between the keys of a row: softmax hides the mean.
    scores, products = (
        torch.where(seen, one - torch.where(seen, one, 0).sum(dim=-1, keepdim=True) / n_seen, 0)
        for one in (scores, products)
    )
    total = float((products**2).sum())
    scale = float((scores * products).sum()) / total if total else 0.0
    return float(((scores - scale * products) ** 2).sum() / (scores**2).sum().clamp_min(1e-12))


def _are_close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()))


def check_live(
    model: HookedRootModule,
    name: str,
    path: str,
    tokens: torch.Tensor,
    plain: torch.Tensor,
    generator: torch.Generator,
) -> None:
    """Raises if an edit at a hook point does not change the logits, or only reading it does."""

    def edited(value: torch.Tensor, hook: object) -> torch.Tensor:
        size = value[value.isfinite()].abs().max().clamp_min(1.0)
        return value + torch.randn(value.shape, generator=generator) * size

    if not torch.equal(model.run_with_hooks(tokens, fwd_hooks=[(name, lambda value, hook: value)]), plain):
        raise RaspLensError(f"The model's logits change from run to run, or when {name} is read.")
    if torch.equal(model.run_with_hooks(tokens, fwd_hooks=[(name, edited)]), plain):
        raise RaspLensError(f"{name} is not live: an edit at {path} does not reach the logits.")
