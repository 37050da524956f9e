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
from scipy.optimize import minimize

from rasplens.compile.compiled import CompiledModel
from rasplens.compile.compression.examples import Examples
from rasplens.model import Transformer
from rasplens.model.residual import on_residual

_TO_THE_END = {"maxiter": 5_000, "ftol": 1e-16, "gtol": 1e-12}
"""Steep neurons need a map that is right to many digits."""


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


def reading_errors(
    compiled: CompiledModel, examples: Examples
) -> list[tuple[Float[np.ndarray, "D D"], Float[np.ndarray, "D D"]]]:
    """What it takes to say how far readings of the stream are off, if it goes through a map: `fitted_map`.

    Returns:
        For every point at which the stream is read, the sum of `r rᵀ` over all that read there, r being the
        direction that a head's query, key or value, a neuron or a logit reads, and the mean of `x xᵀ` over the
        compiled model's own states x.
    """
    transformer = compiled.transformer
    _, cache = transformer.run_with_cache(examples.tokens)
    found = []
    for layer in range(transformer.config.n_layers):
        names = [f"blocks.{layer}.attn.W_{kind}" for kind in "QKV"]
        found.append((f"blocks.{layer}.hook_resid_pre", [m for name in names for m in transformer.weights[name]]))
        if not transformer.config.attn_only:
            found.append((f"blocks.{layer}.hook_resid_mid", [transformer.weights[f"blocks.{layer}.mlp.W_in"]]))
    last = f"blocks.{transformer.config.n_layers - 1}.hook_resid_post"
    found.append((last, [transformer.weights["unembed.W_U"]]))
    parts = []
    for point, matrices in found:
        states = cache[point][examples.real].astype(np.float64)
        parts.append((sum(m.astype(np.float64) @ m.T for m in matrices), states.T @ states / len(states)))
    return parts


def fitted_map(
    parts: list[tuple[Float[np.ndarray, "D D"], Float[np.ndarray, "D D"]]], first: Float[np.ndarray, "D d"]
) -> Float[np.ndarray, "D d"]:
    """The map, reached from a first one, through which everything is read most nearly as it was written.

    It minimises the squared error of every reading, `E |rᵀ (W Wᵀ - 1) x|²`, on the states of the compiled model:
    as principal components do if everything is read alike. What a steep neuron reads counts for more, since
    there a small error changes the answer.

    Args:
        parts: From `reading_errors`.
        first: Where to begin.
    """
    wide, total = len(first), sum(np.trace(reads @ states) for reads, states in parts)

    def error(flat: np.ndarray) -> tuple[float, np.ndarray]:
        projection = flat.reshape(first.shape)
        off = projection @ projection.T - np.eye(wide)
        slopes = [reads @ off @ states for reads, states in parts]
        slope = 2 * sum(slopes)
        return float((sum(slopes) * off).sum() / total), ((slope + slope.T) @ projection / total).ravel()

    found = minimize(error, first.astype(np.float64).ravel(), jac=True, method="L-BFGS-B", options=_TO_THE_END)
    return found.x.reshape(first.shape)


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
