"""The transformer that both sides produce: its config, its weights, how it runs and how it is stored."""

from typing import Any

from rasplens.model.bridge import to_bridge
from rasplens.model.config import Config, bias_shapes, hook_names, weight_shapes
from rasplens.model.mask import bidirectional_mask, causal_mask
from rasplens.model.reparametrise import disguise
from rasplens.model.storage import StorageError, load, load_provenance, save
from rasplens.model.transformer import HasTransformer, Transformer, transformer_of

__all__ = [
    "Config",
    "HasTransformer",
    "HookedModel",
    "StorageError",
    "Transformer",
    "bias_shapes",
    "bidirectional_mask",
    "causal_mask",
    "disguise",
    "hook_names",
    "load",
    "load_provenance",
    "save",
    "to_bridge",
    "transformer_of",
    "weight_shapes",
]


def __getattr__(name: str) -> Any:
    """Imports torch and TransformerLens where they are used: compiling needs neither."""
    if name == "HookedModel":
        from rasplens.model.hooked import HookedModel

        return HookedModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
