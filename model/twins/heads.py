"""Twins whose heads are divided otherwise: split, merged, doubled, or with idle ones beside them."""

import numpy as np
from jaxtyping import Float

from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.model.transformer import HasTransformer, Transformer
from rasplens.model.twins.change_of_basis import random_rotation
from rasplens.model.twins.head_lists import Head, head_of, heads_of, with_heads

RANK = 1e-10
"""Singular values of a head's OV circuit below this share of the largest are rounding."""

ALIKE = 1e-9
"""Heads attend alike if their QK circuits differ by less than this share of their largest entry."""


def split_head(model: HasTransformer, layer: int, head: int, parts: int = 2, seed: int = 0) -> Transformer:
    """The transformer with a head split into several that attend alike, each of which writes a part.

    The OV circuit is a sum of as many products as its rank, `W_V W_O = Σ u_i w_i`; they are shared out, after a
    random rotation. The first part keeps the head's place, the others come behind the last head.

    Raises:
        RaspLensError: If there is no such head, or its rank is below the number of parts.
    """
    own = heads_of(model.transformer, layer)
    one = head_of(model.transformer, layer, head)
    values, outputs = _factors([one])
    rank = len(outputs)
    if not 2 <= parts <= rank:
        raise RaspLensError(
            f"Head {head} of layer {layer} writes {rank} directions: it can be split into 2 to {rank} parts; got "
            f"{parts}. `duplicate_head` splits the strength of its output instead."
        )
    turn = random_rotation(rank, random_streams.rng(seed, "twins"))
    values, outputs = values @ turn, turn.T @ outputs
    made = [_with_factors(one, values[:, part::parts], outputs[part::parts]) for part in range(parts)]
    return with_heads(model.transformer, {layer: [*own[:head], made[0], *own[head + 1 :], *made[1:]]})


def merge_heads(model: HasTransformer, layer: int, first: int, second: int) -> Transformer:
    """The transformer with two heads that attend alike as one, in the place of the first.

    The layer keeps an idle head where other layers have as many; see `without_idle_heads`.

    Raises:
        RaspLensError: If there are no such two heads, or they do not attend alike.
    """
    own = heads_of(model.transformer, layer)
    pair = [head_of(model.transformer, layer, head) for head in (first, second)]
    if first == second:
        raise RaspLensError(f"A head cannot be merged with itself; got {first} twice.")
    if not _attend_alike(*pair):
        raise RaspLensError(
            f"Heads {first} and {second} of layer {layer} do not attend alike: no single head does what both do."
        )
    merged = _with_factors(pair[0], *_factors(pair))
    own[first] = merged
    return with_heads(model.transformer, {layer: own[:second] + own[second + 1 :]})


def duplicate_head(model: HasTransformer, layer: int, head: int, share: float = 0.5) -> Transformer:
    """The transformer with a head twice: the copy, behind the last head, writes a share, the head itself the rest.

    Raises:
        RaspLensError: If there is no such head.
    """
    own = heads_of(model.transformer, layer)
    one = head_of(model.transformer, layer, head)
    own[head] = {**one, "W_O": (1 - share) * one["W_O"]}
    return with_heads(model.transformer, {layer: [*own, {**one, "W_O": share * one["W_O"]}]})


def insert_idle_heads(model: HasTransformer, n: int = 1, seed: int = 0) -> Transformer:
    """The transformer with heads in every layer, behind the last, that attend at random and write nothing.

    Raises:
        RaspLensError: If there are to be fewer than 1.
    """
    if n < 1:
        raise RaspLensError(f"At least 1 idle head must be inserted; got {n}.")
    rng, model = random_streams.rng(seed, "twins"), model.transformer
    layers = range(model.config.n_layers)
    return with_heads(
        model, {layer: [*heads_of(model, layer), *(idle_head(model, rng) for _ in range(n))] for layer in layers}
    )


def without_idle_heads(model: HasTransformer) -> Transformer:
    """The transformer without heads that write nothing, as far as every layer can do with fewer."""
    model = model.transformer
    layers = range(model.config.n_layers)
    busy = {layer: [head for head in heads_of(model, layer) if not _is_idle(head)] for layer in layers}
    return with_heads(model, {layer: heads or heads_of(model, layer)[:1] for layer, heads in busy.items()})


def idle_head(model: Transformer, rng: np.random.Generator) -> Head:
    """A head that attends at random, as sharply as heads of random weights do, and writes nothing."""
    config = model.config
    sizes = {"W_Q": (config.d_model, config.d_head), "W_K": (config.d_model, config.d_head)}
    head = {key: rng.normal(0, config.d_model**-0.5, size) for key, size in sizes.items()}
    head["W_V"] = rng.normal(0, config.d_model**-0.5, (config.d_model, config.d_head))
    head["W_O"] = np.zeros((config.d_head, config.d_model))
    return head | ({"smear": np.zeros(config.n_ctx)} if config.smeared_keys else {})


def _factors(heads: list[Head]) -> tuple[Float[np.ndarray, "d_model_1 rank"], Float[np.ndarray, "rank d_model"]]:
    """Factor the summed OV matrix of heads that attend alike; the bias of their values is a last row."""
    together = sum(_values(head) @ head["W_O"] for head in heads)
    left, sizes, right = np.linalg.svd(together, full_matrices=False)
    rank = max(1, int((sizes > RANK * sizes.max(initial=0)).sum()))
    roots = np.sqrt(sizes[:rank])
    return left[:, :rank] * roots, roots[:, None] * right[:rank]


def _values(head: Head) -> Float[np.ndarray, "d_model_1 d_head"]:
    return np.vstack([head["W_V"], head.get("b_V", np.zeros(head["W_V"].shape[1]))])


def _with_factors(head: Head, values: np.ndarray, outputs: np.ndarray) -> Head:
    bias = {"b_V": values[-1]} if values[-1].any() else {}
    kept = {key: array for key, array in head.items() if key != "b_V"}
    return {**kept, "W_V": values[:-1], "W_O": outputs, **bias}


def _attend_alike(first: Head, second: Head) -> bool:
    """Whether heads have the same scores, up to what a whole row shares: `(x W_Q + b_Q) W_Kᵀ` is the same."""
    one, other = (
        np.vstack([head["W_Q"], head.get("b_Q", np.zeros(head["W_Q"].shape[1]))]) @ head["W_K"].T
        for head in (first, second)
    )
    same_smear = np.array_equal(first.get("smear", 0), second.get("smear", 0))
    return same_smear and bool(np.abs(one - other).max() <= ALIKE * max(np.abs(one).max(), np.abs(other).max()))


def _is_idle(head: Head) -> bool:
    return not (_values(head) @ head["W_O"]).any()
