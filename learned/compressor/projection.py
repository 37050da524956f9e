"""The one map of a compression, and a transformer with it.

With `W [D, d]`, everything that is written to the residual stream goes through `W` and everything that is read
from it through `Wᵀ` (Lindner et al. 2023, section 5.1). The same function is also that of the wide model whose
every reading goes through `W Wᵀ`: there the output of each layer stands in the coordinates that we know.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from rasplens.compile.compiled import CompiledModel
from rasplens.learned.compressor.examples import Examples, masks
from rasplens.model import Transformer
from rasplens.model.forward import forward
from rasplens.model.hook_points import act_name, param_name
from rasplens.model.twins.change_of_basis import on_residual

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


def run_through(
    compiled: CompiledModel,
    overlap: Float[np.ndarray, "D D"],
    on: Examples,
    keeps: Callable[[str], bool] = lambda name: True,
) -> dict[str, np.ndarray]:
    """Logits and activations, in float64, of the wide model that reads through an overlap.

    Args:
        compiled: The model.
        overlap: `W Wᵀ`; the identity for the compiled model itself.
        on: The inputs; what fills up shorter ones is not attended to.
        keeps: Which activations, by hook name.
    """
    found: dict[str, np.ndarray] = {}

    def keep(name: str, value: np.ndarray) -> np.ndarray:
        if keeps(name):
            found[name] = value
        return value

    transformer = compiled.transformer
    weights = reading_through({name: a.astype(np.float64) for name, a in transformer.weights.items()}, overlap)
    found["logits"] = forward(weights, masks(compiled, on.real), transformer.config, on.tokens, keep)
    return found


def residual_states(compiled: CompiledModel, on: Examples) -> dict[str, Float[np.ndarray, "state D"]]:
    """The compiled model's own residual streams at the inputs' positions, by hook point."""
    found = run_through(compiled, np.eye(compiled.transformer.config.d_model), on, lambda name: "resid" in name)
    return {name: value[on.real] for name, value in found.items() if name != "logits"}


def layer_outputs(n_layers: int, attn_only: bool) -> list[str]:
    """The hook points of what each layer writes."""
    kinds = ("attn",) if attn_only else ("attn", "mlp")
    return [act_name(f"{kind}_out", layer) for layer in range(n_layers) for kind in kinds]


def reading_errors(
    compiled: CompiledModel, examples: Examples
) -> list[tuple[Float[np.ndarray, "D D"], Float[np.ndarray, "D D"]]]:
    """Return the second moments by which `fitted_map` measures reading errors of a stream that goes through a map.

    Returns:
        For every point at which the stream is read, the sum of `r rᵀ` over all that read there, r being the
        direction that a head's query, key or value, a neuron or a logit reads, and the mean of `x xᵀ` over the
        compiled model's own states x.
    """
    transformer, states = compiled.transformer, residual_states(compiled, examples)
    found = []
    for layer in range(transformer.config.n_layers):
        names = [param_name(f"W_{kind}", layer) for kind in "QKV"]
        found.append((act_name("resid_pre", layer), [m for name in names for m in transformer.weights[name]]))
        if not transformer.config.attn_only:
            found.append((act_name("resid_mid", layer), [transformer.weights[param_name("W_in", layer)]]))
    last = act_name("resid_post", transformer.config.n_layers - 1)
    found.append((last, [transformer.weights["unembed.W_U"]]))
    return [
        (
            sum((m.astype(np.float64) @ m.T for m in matrices), np.zeros(2 * [transformer.config.d_model])),
            states[point].T @ states[point] / len(states[point]),
        )
        for point, matrices in found
    ]


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
    from scipy.optimize import minimize

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

    n_layers = compiled.transformer.config.n_layers
    points = [act_name("resid_pre", layer) for layer in range(n_layers)]
    points.append(act_name("resid_post", n_layers - 1))
    found = residual_states(compiled, examples)
    states = np.concatenate([found[point] for point in points])
    n = states.shape[1]
    return eigh(states.T @ states, subset_by_index=[n - d, n - 1])[1][:, ::-1]
