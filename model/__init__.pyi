"""The names of the package, each imported from its module when it is first used."""

from .config import (
    Config,
    bias_shapes,
    hook_names,
    weight_shapes,
)
from .exports.bridge import (
    to_bridge,
)
from .hooked import (
    HookedModel,
)
from .mask import (
    bidirectional_mask,
    causal_mask,
)
from .storage import (
    StorageError,
    load,
    load_provenance,
    save,
)
from .transformer import (
    HasTransformer,
    Transformer,
    transformer_of,
)
from .twins.reparametrise import (
    disguise,
)

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
