"""The transformer in torch, with TransformerLens hook points on every activation."""

from collections.abc import Iterable
from typing import Any, Literal

import array_api_compat.torch as xp
import numpy as np
import torch
from jaxtyping import Float, Int
from transformer_lens import ActivationCache, HookedRootModule
from transformer_lens.hook_points import HookPoint

from rasplens.errors import RaspLensError, meant
from rasplens.model.config import hook_names
from rasplens.model.forward import ForwardPass
from rasplens.model.hook_points import ATTENTION, act_name, param_name
from rasplens.model.transformer import HasTransformer, Transformer, check_tokens, in_a_line

LARGE = 2**20
"""From this size of a residual stream on, in numbers, finding the directions that weights use saves time."""

READING = "attn.W_Q", "attn.W_K", "attn.W_V", "mlp.W_in", "unembed.W_U"
WRITING = "attn.W_O", "mlp.W_out"
"""Endings of the names of weights that read the residual stream, and of those that write to it."""

ReturnType = Literal["logits", "loss", "both"] | None
"""What a forward pass returns, as in TransformerLens; with None it runs and returns nothing."""


class HookedModel(HookedRootModule):
    """A `Transformer` as a torch module, to be used like TransformerLens's models.

    `run_with_hooks` works, `run_with_cache` returns an `ActivationCache`, weights stand stacked under the usual
    names (`W_Q`, `W_O`, `W_E`, …). Its `state_dict` has the weights' own names, and every hook point of
    `hook_names` is live: an edit there reaches the logits.

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
            attach(self, name, torch.nn.Parameter(torch.tensor(array, dtype=dtype)))
        for name in hook_names(self.cfg):
            attach(self, name, HookPoint())
        self.setup()

    def forward(
        self,
        tokens: Int[torch.Tensor, "batch pos"] | Float[torch.Tensor, "batch pos d_model"],
        start_at_layer: int | None = None,
        return_type: ReturnType = "logits",
    ) -> Any:
        """Logits `[batch, pos, d_vocab_out]`; see `rasplens.model.forward.ForwardPass`.

        Args:
            tokens: The inputs; with `start_at_layer`, the residual stream before that layer instead.
            start_at_layer: Where to start, as in TransformerLens; hook points before it are passed by.
            return_type: "logits", "loss" (the mean cross-entropy of the next token, in nats), "both" as a tuple,
                or None.

        Raises:
            RaspLensError: If the tokens do not fit the config, or a loss is asked of logits that are no tokens.
        """
        if return_type in ("loss", "both") and (
            start_at_layer is not None or self.cfg.d_vocab != self.cfg.d_vocab_out
        ):
            raise RaspLensError(
                f"return_type={return_type!r} needs token inputs and a logit for each token; got "
                f"start_at_layer={start_at_layer}, d_vocab={self.cfg.d_vocab}, d_vocab_out={self.cfg.d_vocab_out}."
            )
        logits = self._logits(tokens, start_at_layer)
        if return_type is None or return_type == "logits":
            return logits if return_type else None
        if return_type not in ("loss", "both"):
            raise RaspLensError(f'return_type must be "logits", "loss", "both" or None; got {return_type!r}.')
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten().long())
        return loss if return_type == "loss" else (logits, loss)

    def _logits(
        self, tokens: torch.Tensor, start_at_layer: int | None
    ) -> Float[torch.Tensor, "batch pos d_vocab_out"]:
        if start_at_layer is None:
            check_tokens(self.cfg, tokens)
        weights = dict(self.named_parameters())
        per_head = any(_is_hooked(point) for point in self._results)
        is_large = tokens.shape[0] * tokens.shape[1] * self.cfg.d_model >= LARGE
        silent, used = self._silent_layers(), self._used_directions(weights) if is_large else {}
        run = ForwardPass(
            weights, self.mask, self.cfg, self._hook, xp, per_head=per_head, silent=silent, used=used
        )
        return run.logits(tokens) if start_at_layer is None else run.logits_from(start_at_layer, tokens)

    def forward_from(
        self,
        layer: int,
        residual: Float[torch.Tensor, "batch pos d_model"],
        gathered: Float[torch.Tensor, "batch pos head d_head"],
    ) -> Float[torch.Tensor, "batch pos d_vocab_out"]:
        """Logits of a pass that goes on behind a layer's attention; see `ForwardPass.logits_from`.

        Hook points are passed by.
        """
        weights = dict(self.named_parameters())
        run = ForwardPass(weights, self.mask, self.cfg, xp=xp, per_head=False)
        return run.logits_from(layer, residual, gathered)

    def run_with_cache(
        self, *inputs: Any, names_filter: Any = None, remove_batch_dim: bool = False, **options: Any
    ) -> tuple[Any, ActivationCache]:
        """Output and activations; see TransformerLens's `run_with_cache`.

        Raises:
            RaspLensError: If a name is that of no hook point, with the nearest one.
        """
        self._check_names([names_filter] if isinstance(names_filter, str) else names_filter)
        output, found = super().run_with_cache(
            *inputs, names_filter=names_filter, remove_batch_dim=remove_batch_dim, **options
        )
        return output, ActivationCache(dict(found), self, has_batch_dim=not remove_batch_dim)

    def run_with_hooks(
        self, *inputs: Any, fwd_hooks: Iterable[Any] = (), bwd_hooks: Iterable[Any] = (), **options: Any
    ) -> Any:
        """Output of a pass with hooks; see TransformerLens's `run_with_hooks`.

        Raises:
            RaspLensError: If a name is that of no hook point, with the nearest one.
        """
        forward, backward = list(fwd_hooks), list(bwd_hooks)
        self._check_names([name for name, _ in (*forward, *backward)])
        return super().run_with_hooks(*inputs, fwd_hooks=forward, bwd_hooks=backward, **options)

    def _check_names(self, names: Any) -> None:
        for name in names if isinstance(names, list | tuple) else ():
            if isinstance(name, str) and name not in self.hook_dict:
                raise RaspLensError(f"There is no hook point {name!r}.{meant(name, self.hook_dict)}")

    # Weights, stacked over layers, under TransformerLens's names and axes.

    @property
    def W_E(self) -> Float[torch.Tensor, "d_vocab d_model"]:
        """The embedding."""
        return self.get_parameter("embed.W_E")

    @property
    def W_U(self) -> Float[torch.Tensor, "d_model d_vocab_out"]:
        """The unembedding."""
        return self.get_parameter("unembed.W_U")

    @property
    def W_pos(self) -> Float[torch.Tensor, "n_ctx d_model"]:
        """The position embedding.

        Raises:
            RaspLensError: If positions are not learned.
        """
        if self.cfg.positions != "learned":
            raise RaspLensError(f"The model has no W_pos: its positions are {self.cfg.positions!r}.")
        return self.get_parameter("pos_embed.W_pos")

    @property
    def W_Q(self) -> Float[torch.Tensor, "layer head d_model d_head"]:
        """The query weights."""
        return self._stacked("W_Q")

    @property
    def W_K(self) -> Float[torch.Tensor, "layer head d_model d_head"]:
        """The key weights."""
        return self._stacked("W_K")

    @property
    def W_V(self) -> Float[torch.Tensor, "layer head d_model d_head"]:
        """The value weights."""
        return self._stacked("W_V")

    @property
    def W_O(self) -> Float[torch.Tensor, "layer head d_head d_model"]:
        """The output weights."""
        return self._stacked("W_O")

    @property
    def W_in(self) -> Float[torch.Tensor, "layer d_model d_mlp"]:
        """The input weights of the MLPs."""
        return self._stacked("W_in")

    @property
    def W_out(self) -> Float[torch.Tensor, "layer d_mlp d_model"]:
        """The output weights of the MLPs."""
        return self._stacked("W_out")

    def _stacked(self, name: str) -> torch.Tensor:
        if not self.cfg.n_layers or (name in ("W_in", "W_out", "b_in", "b_out") and self.cfg.attn_only):
            raise RaspLensError(f"The model has no {name}: it has no such layer.")
        return torch.stack([self.get_parameter(param_name(name, i)) for i in range(self.cfg.n_layers)])

    def accumulated_bias(
        self, layer: int, mlp_input: bool = False, include_mlp_biases: bool = True
    ) -> Float[torch.Tensor, " d_model"]:
        """The biases that are written before a layer, or before its MLP; `ActivationCache` asks for them."""
        known, total = dict(self.named_parameters()), torch.zeros(self.cfg.d_model, dtype=self.W_E.dtype)
        for i in range(layer + mlp_input):
            names = [param_name("b_O", i)]
            names += [param_name("b_out", i)] if include_mlp_biases and i < layer else []
            total = total + sum(known[name].detach() for name in names if name in known)
        return total

    def tokens_to_residual_directions(self, tokens: Any) -> Float[torch.Tensor, "*tokens d_model"]:
        """The directions of the residual stream along which answers' logits are read.

        Args:
            tokens: An answer's place among the logits, or several of them.
        """
        return self.W_U.T[torch.as_tensor(tokens)]

    def __repr__(self) -> str:
        return f"HookedModel({in_a_line(self.cfg)}, {len(self.hook_dict)} hook points)"

    @property
    def is_hooked(self) -> bool:
        """Whether a hook sits on any of its hook points."""
        return any(map(_is_hooked, self.hook_dict.values()))

    def to_transformer(self) -> Transformer:
        """The present parameters as a `Transformer`."""
        weights = {name: value.detach().cpu().numpy() for name, value in self.named_parameters()}
        return Transformer(self.cfg, weights, np.asarray(self.mask.cpu()))

    def _silent_layers(self) -> list[int]:
        """The layers whose heads write nothing, where nobody looks at them: a compiled model has many.

        While gradients are wanted there are none: an output of zero may have a gradient that is not.
        """
        if torch.is_grad_enabled():
            return []
        return [
            layer
            for layer in range(self.cfg.n_layers)
            if not self.get_parameter(param_name("W_O", layer)).any() and not self._attention_is_hooked(layer)
        ]

    def _used_directions(self, weights: dict[str, torch.nn.Parameter]) -> dict[str, slice | torch.Tensor]:
        """The directions of the stream that a weight reads or writes, where these are at most half of all.

        So it is in a compiled model. While gradients are wanted there are none: a weight of zero may have a
        gradient that is not.
        """
        if torch.is_grad_enabled():
            return {}
        found: dict[str, slice | torch.Tensor] = {}
        for name in (name for name in weights if name.endswith((*READING, *WRITING))):
            writes, weight = name.endswith(WRITING), weights[name]
            of_stream = weight.movedim(-1 if writes else -2, 0).reshape(self.cfg.d_model, -1)
            used = of_stream.any(dim=1).nonzero()[:, 0]
            if not len(used) or 2 * len(used) > self.cfg.d_model:
                continue
            first, end = int(used[0]), int(used[-1]) + 1
            if 2 * (end - first) <= self.cfg.d_model:
                found[name] = slice(first, end)
            elif not writes:
                found[name] = used
        return found

    def _attention_is_hooked(self, layer: int) -> bool:
        names = (act_name(activation, layer) for activation in ATTENTION)
        return any(_is_hooked(self.hook_dict[name]) for name in names if name in self.hook_dict)

    @property
    def _results(self) -> list[HookPoint]:
        return [self.hook_dict[act_name("result", layer)] for layer in range(self.cfg.n_layers)]

    def _hook(self, name: str, value: torch.Tensor) -> torch.Tensor:
        return self.hook_dict[name](value)


def _is_hooked(point: HookPoint) -> bool:
    """Whether anything, be it torch's own hooks, looks at a hook point."""
    before, after = (
        (point._forward_pre_hooks, point._backward_pre_hooks),
        (point._forward_hooks, point._backward_hooks),
    )
    return any((*before, *after))


def attach(root: torch.nn.Module, name: str, leaf: Any) -> None:
    """Registers `leaf` on `root` under a dotted name, with plain modules and lists for what lies between."""
    parent: Any = root
    *path, last = name.split(".")
    for part in path:
        if part not in parent._modules:
            parent.add_module(part, torch.nn.ModuleList() if part == "blocks" else torch.nn.Module())
        parent = parent._modules[part]
    setattr(parent, last, leaf)
