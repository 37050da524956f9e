"""The one map of a compression, and a transformer with it.

With `W [D, d]`, everything that is written to the residual stream goes through `W` and everything that is read
from it through `Wᵀ` (Lindner et al. 2023, section 5.1). The same function is also that of the wide model whose
every reading goes through `W Wᵀ`: there the output of each layer stands in the coordinates that we know.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from rasplens.compile.compiled import CompiledModel
from rasplens.compile.compression.examples import Examples
from rasplens.model import Transformer
from rasplens.model.residual import on_residual


def narrow(transformer: Transformer, projection: Float[np.ndarray, "D d"]) -> Transformer:
    """The transformer with a residual stream of d directions."""
    weights = on_residual(
        transformer.weights, lambda array: projection.T @ array, lambda array: array @ projection
    )
    config = replace(transformer.config, d_model=projection.shape[1], identity_v=False, identity_o=False)
    return Transformer(
        config, {name: a.astype(transformer.dtype) for name, a in weights.items()}, transformer.mask
    )


def reading_through(weights: Mapping[str, Any], overlap: Any) -> dict[str, Any]:
    """The weights of the wide transformer that computes the same as the narrow one.

    Args:
        weights: The compiled transformer's.
        overlap: `W Wᵀ`, `[D, D]`.
    """
    return on_residual(weights, lambda array: overlap @ array, lambda array: array)


def layer_outputs(n_layers: int, attn_only: bool) -> list[str]:
    """The hook points of what each layer writes."""
    kinds = ("attn",) if attn_only else ("attn", "mlp")
    return [f"blocks.{layer}.hook_{kind}_out" for layer in range(n_layers) for kind in kinds]


def principal_components(compiled: CompiledModel, examples: Examples, d: int) -> Float[np.ndarray, "D d"]:
    """The baseline: the d directions that hold most of the compiled residual stream, over all of its states.

    The mean is not taken out: a linear map can only keep it.
    """
    from scipy.linalg import eigh

    transformer = compiled.transformer
    _, cache = transformer.run_with_cache(examples.tokens)
    last = f"blocks.{transformer.config.n_layers - 1}.hook_resid_post"
    points = [f"blocks.{layer}.hook_resid_pre" for layer in range(transformer.config.n_layers)] + [last]
    states = np.concatenate([cache[point][examples.real] for point in points if point in cache])
    n = states.shape[1]
    return eigh(states.T @ states, subset_by_index=[n - d, n - 1])[1][:, ::-1]
