"""The transformer in torch, with TransformerLens hook points on every activation."""

from typing import Any

import array_api_compat.torch as xp
import numpy as np
import torch
from jaxtyping import Float, Int
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint

from rasplens.model.config import hook_names
from rasplens.model.forward import forward, forward_from
from rasplens.model.transformer import HasTransformer, Transformer, check_tokens


class HookedModel(HookedRootModule):
    """A `Transformer` as a torch module: `run_with_cache`, `run_with_hooks` and `ActivationCache` work.

    Its `state_dict` has the weights' own names, and every hook point of `hook_names` is live: an edit
    there reaches the logits.

    Args:
        model: The transformer to wrap, or a model that has one; its weights are copied.
        dtype: Of the parameters; by default the transformer's own.
    """

    def __init__(self, model: HasTransformer, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        transformer = model.transformer
        self.cfg = transformer.config
        self.register_buffer("mask", torch.tensor(transformer.mask), persistent=False)
        for name, array in transformer.weights.items():
            _attach(self, name, torch.nn.Parameter(torch.tensor(array, dtype=dtype)))
        for name in hook_names(self.cfg):
            _attach(self, name, HookPoint())
        self.setup()

    def forward(
        self,
        tokens: Int[torch.Tensor, "batch pos"] | Float[torch.Tensor, "batch pos d_model"],
        start_at_layer: int | None = None,
    ) -> Float[torch.Tensor, "batch pos d_vocab_out"]:
        """Logits; see `rasplens.model.forward.forward`.

        Args:
            tokens: The inputs; with `start_at_layer`, the residual stream before that layer instead.
            start_at_layer: Where to start, as in TransformerLens; hook points before it are passed by.

        Raises:
            ValueError: If the tokens do not fit the config.
        """
        weights = dict(self.named_parameters())
        per_head = any(_is_hooked(point) for point in self._results)
        if start_at_layer is not None:
            start = start_at_layer, tokens, None
            return forward_from(weights, self.mask, self.cfg, *start, self._hook, xp, per_head)
        check_tokens(self.cfg, tokens)
        return forward(weights, self.mask, self.cfg, tokens, self._hook, xp, per_head)

    def forward_from(
        self,
        layer: int,
        residual: Float[torch.Tensor, "batch pos d_model"],
        gathered: Float[torch.Tensor, "batch pos head d_head"],
    ) -> Float[torch.Tensor, "batch pos d_vocab_out"]:
        """Logits of a pass that goes on behind a layer's attention; see `rasplens.model.forward.forward_from`.

        Hook points are passed by.
        """
        weights = dict(self.named_parameters())
        return forward_from(weights, self.mask, self.cfg, layer, residual, gathered, xp=xp)

    @property
    def is_hooked(self) -> bool:
        """Whether a hook sits on any of its hook points."""
        return any(map(_is_hooked, self.hook_dict.values()))

    def to_transformer(self) -> Transformer:
        """The present parameters as a `Transformer`."""
        weights = {name: value.detach().cpu().numpy() for name, value in self.named_parameters()}
        return Transformer(self.cfg, weights, np.asarray(self.mask.cpu()))

    @property
    def _results(self) -> list[HookPoint]:
        return [self.hook_dict[f"blocks.{layer}.attn.hook_result"] for layer in range(self.cfg.n_layers)]

    def _hook(self, name: str, value: torch.Tensor) -> torch.Tensor:
        return self.hook_dict[name](value)


def _is_hooked(point: HookPoint) -> bool:
    """Whether anything, be it torch's own hooks, looks at a hook point."""
    before, after = (
        (point._forward_pre_hooks, point._backward_pre_hooks),
        (point._forward_hooks, point._backward_hooks),
    )
    return any((*before, *after))


def _attach(root: torch.nn.Module, name: str, leaf: Any) -> None:
    """Registers `leaf` on `root` under a dotted name, with plain modules and lists for what lies between."""
    parent: Any = root
    *path, last = name.split(".")
    for part in path:
        if part not in parent._modules:
            parent.add_module(part, torch.nn.ModuleList() if part == "blocks" else torch.nn.Module())
        parent = parent._modules[part]
    setattr(parent, last, leaf)
