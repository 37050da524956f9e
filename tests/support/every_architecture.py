"""A small config of each kind that the forward pass knows, with the options of `random_transformer`."""

import numpy as np

from rasplens.model import Config, bidirectional_mask, causal_mask


def base(**changes) -> Config:
    sizes = {
        "n_layers": 2,
        "n_heads": 2,
        "d_model": 6,
        "d_head": 4,
        "n_ctx": 5,
        "d_vocab": 7,
        "d_vocab_out": 3,
    }
    return Config(**{**sizes, **changes})


def silent_row_mask(n_layers: int, n_ctx: int) -> np.ndarray:
    mask = causal_mask(n_layers, n_ctx)
    mask[0, 1:3] = False
    return mask


FEATURES = {
    "plain": (base(), {}),
    "biases": (base(), {"biases": True}),
    "mlp": (base(d_mlp=8), {"biases": True}),
    "one head": (base(n_heads=1), {}),
    "unscaled scores": (base(attn_scale=1.0), {}),
    "sinusoids on queries and keys": (base(positions="sinusoidal_qk"), {}),
    "no positions": (base(positions="none"), {}),
    "shortformer positions": (base(positions="shortformer"), {"biases": True}),
    "shortformer positions, layer norm": (base(positions="shortformer", normalization="LN"), {}),
    "rotary positions": (base(positions="rotary"), {"biases": True}),
    "rotary positions on half a head": (base(positions="rotary", rotary_dim=2), {}),
    "gelu": (base(d_mlp=3, activation="gelu"), {"biases": True}),
    "gelu_new": (base(d_mlp=3, activation="gelu_new"), {}),
    "silu": (base(d_mlp=3, activation="silu"), {}),
    "smeared keys": (base(smeared_keys=True), {}),
    "smeared keys with sinusoids": (base(smeared_keys=True, positions="sinusoidal_qk"), {}),
    "identity OV": (base(n_heads=1, d_head=6, identity_v=True, identity_o=True), {}),
    "layer norm": (base(normalization="LN"), {}),
    "layer norm without scale and shift, with an MLP": (base(normalization="LNPre", d_mlp=8), {"biases": True}),
    "bidirectional": (base(), {"mask": bidirectional_mask(2, 5)}),
    "mask per layer with silent rows": (base(), {"mask": silent_row_mask(2, 5)}),
    "no layers": (base(n_layers=0), {"mask": causal_mask(0, 5)}),
}
