"""Places that can reach an answer, by what heads see and what varies. Elsewhere an intervention asks nothing."""

import numpy as np
from jaxtyping import Bool

from rasplens.compare.claims.edges.attention_scores import HIDDEN, ROUNDING
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model.hook_points import act_name
from rasplens.model.interventions import LETTERS, EdgePart

READ_BY_OTHERS = "k", "v"
"""Hook letters of the activations that a position passes to those that attend to it."""

BEFORE_ATTENTION = "hook_resid_pre", "hook_attn_in", "ln1"
"""Names of the hook points that a layer's attention reads."""


Seen = Bool[np.ndarray, "layer ctx ctx"]
"""For each layer, which positions (keys) each position (query) sees."""


def reaching(studied: StudiedModel, point: str) -> Bool[np.ndarray, " pos"]:
    """The task's positions at which what passes a hook point can reach an answer."""
    seen = _seen(studied)
    if not point.startswith("blocks."):
        is_first = point in ("hook_embed", "hook_pos_embed")
        return _behind(studied, seen, 0 if is_first else studied.n_layers)[studied.places]
    layer, name, *more = point.removeprefix("blocks.").split(".")
    found = _behind(studied, seen, int(layer) + (name not in BEFORE_ATTENTION))
    if _letter((name, *more)[-1]) in READ_BY_OTHERS:
        found = seen[int(layer)][found].any(axis=0)
    return found[studied.places]


def reaching_edges(studied: StudiedModel, part: EdgePart) -> Bool[np.ndarray, "layer query key"]:
    """The edges of the task's positions along which a part can reach an answer, by layer.

    In a row of a single key all attention is there, whatever queries and keys are: only its value counts.
    """
    seen = _seen(studied)
    has_choice = (seen.sum(axis=2, keepdims=True) > 1) | (part == "values")
    read = np.stack([_behind(studied, seen, layer + 1) for layer in range(len(seen))])
    attends = np.isin(np.arange(len(seen)), studied.attending_layers)[:, None, None]
    return (seen & has_choice & read[..., None] & attends)[:, studied.places][:, :, studied.places]


def seen_edges(studied: StudiedModel) -> Bool[np.ndarray, "query key"]:
    """The edges of the task's positions that a mask leaves, in some layer."""
    return np.asarray(_seen(studied)[:, studied.places][:, :, studied.places].any(axis=0))


def varying(studied: StudiedModel, point: str) -> Bool[np.ndarray, " pos"]:
    """The task's positions at which what passes a hook point differs between inputs."""
    found = studied.activation(point)
    return (np.abs(found - found[:1]) > ROUNDING * np.abs(found).max(initial=0.0)).any(axis=(0, 2))


def varying_edges(studied: StudiedModel, part: EdgePart) -> Bool[np.ndarray, "query key"]:
    """The edges along which a part differs between inputs, in some layer; taken away, all do."""
    if part == "attention":
        return np.ones((studied.n_pos, studied.n_pos), dtype=bool)
    points = [act_name(LETTERS[part], layer) for layer in studied.attending_layers]
    at = np.any([varying(studied, point) for point in points], axis=0)
    return np.broadcast_to(at[:, None] if part == "queries" else at, (studied.n_pos, studied.n_pos))


def _behind(studied: StudiedModel, seen: Seen, first: int) -> Bool[np.ndarray, " ctx"]:
    """The model's positions whose stream before a layer can reach an answer."""
    found = np.zeros(seen.shape[1], dtype=bool)
    found[studied.answer_places] = True
    for of_layer in seen[first:][::-1]:
        found = found | of_layer[found].any(axis=0)
    return found


def _seen(studied: StudiedModel) -> Seen:
    """Return the positions that each layer sees: those with a finite score; all, where there is no hook for it."""
    points = [act_name("attn_scores", layer) for layer in range(studied.n_layers)]
    if not points or not all(point in studied.model.hook_dict for point in points):
        n_ctx = studied.tokens.shape[1]
        return np.ones((studied.n_layers, n_ctx, n_ctx), dtype=bool)
    scores = studied.first(1).cache(points)
    return np.stack([(scores[point] > HIDDEN).any(axis=(0, 1)) for point in points])


def _letter(name: str) -> str:
    """The letter of a hook point of queries, keys or values, such as `hook_rot_k`; nothing of others."""
    last = name.removesuffix("_input").split("_")[-1]
    return last if len(last) == 1 else ""
