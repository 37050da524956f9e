"""Models from elsewhere: our own files, and state dicts of TransformerLens."""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rasplens.errors import RaspLensError
from rasplens.learned.importers.state_dicts import our_names, read_state_dict
from rasplens.learned.learned_model import LearnedModel, load_learned
from rasplens.model import Config, Transformer, bias_shapes, weight_shapes
from rasplens.model.storage import check_size
from rasplens.tasks import Task, as_task

Weights = Mapping[str, np.ndarray]

N_TRIED = 500
"""Held-out inputs on which an imported model is tried."""


def import_checkpoint(path: str | Path, task: Task | str, n_heads: int | None = None) -> LearnedModel:
    """A user's own model for a task.

    Args:
        path: A file that RASPLens wrote, or a state dict of TransformerLens (`.pt`; see
            `rasplens.learned.importers.state_dicts`), whose architecture is inferred from the shapes and whose
            attention mask is the task's.
        task: What it learned, or its name.
        n_heads: Heads per layer, needed for the state dict of a bridge.

    Warns:
        UserWarning: If a state dict answers no better than the commonest answer: its architecture may have what
            shapes do not show (layer norm without weights, another activation, unscaled scores).

    Raises:
        StorageError: If the file is missing, damaged or of no known kind.
        RaspLensError: If the model does not fit the task; the message says what differs.
    """
    path, task = Path(path), as_task(task)
    check_size(path)
    model = load_learned(path) if _is_safetensors(path) else _foreign(path, task, n_heads)
    if model.task != task.name:
        raise RaspLensError(f"{path} learned the task {model.task!r}, not {task.name!r}.")
    check_fits(model.transformer.config, task, str(path))
    return model


def check_fits(config: Config, task: Task, what: str) -> None:
    """Raises where a model's shape does not fit a task.

    Raises:
        RaspLensError: Naming every size that differs.
    """
    sizes = {
        "tokens (d_vocab)": (config.d_vocab, len(task.vocab)),
        "logits (d_vocab_out)": (config.d_vocab_out, len(task.outputs)),
        "positions (n_ctx)": (config.n_ctx, task.n_ctx),
    }
    differing = [f"{got} {name} where it needs {want}" for name, (got, want) in sizes.items() if got != want]
    if differing:
        raise RaspLensError(f"{what} does not fit the task {task.name!r}: it has {', '.join(differing)}.")


def _is_safetensors(path: Path) -> bool:
    """Whether a file starts as safetensors do: the size of a header, then the header's brace."""
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def _foreign(path: Path, task: Task, n_heads: int | None) -> LearnedModel:
    weights, seen = our_names(read_state_dict(path), n_heads, str(path))
    config = infer_config(weights, path)
    check_fits(config, task, str(path))
    mask = task.mask(config.n_layers)
    if seen is not None and seen.shape == mask.shape[1:] and (mask & ~seen.astype(bool)).any():
        raise RaspLensError(f"{path} stores a mask that hides positions which the task {task.name!r} lets it see.")
    transformer = Transformer(config, weights, mask)
    _warn_if_useless(transformer, task, path)
    return LearnedModel(transformer, task.name, {"origin": f"imported from {path.name}"})


def _warn_if_useless(transformer: Transformer, task: Task, path: Path) -> None:
    ids = task.held_out[:N_TRIED]
    targets = task.target(ids)
    commonest = np.mean([np.bincount(column).max() / len(ids) for column in targets.T])
    token = task.accuracy(transformer, ids).token
    if token <= commonest:
        warnings.warn(
            f"{path} answers {token:.3f} right on the task {task.name!r}, no better than the commonest answer. If "
            "it learned the task, its architecture has something that shapes do not show, such as layer norm "
            "without weights, another activation or unscaled scores.",
            stacklevel=3,
        )


def infer_config(weights: Weights, path: Path) -> Config:
    """The architecture of a legacy state dict, from its names and shapes.

    Raises:
        RaspLensError: If it has parts that this package has no model for, or lacks some.
    """
    shapes: dict[str, Any] = {name: array.shape for name, array in weights.items()}
    layers = {int(m.group(1)) for name in shapes if (m := re.match(r"blocks\.(\d+)\.", name))}
    try:
        d_vocab, d_model = shapes["embed.W_E"]
        n_heads, _, d_head = shapes["blocks.0.attn.W_Q"]
        config = Config(
            n_layers=len(layers),
            n_heads=n_heads,
            d_model=d_model,
            d_head=d_head,
            n_ctx=shapes["pos_embed.W_pos"][0],
            d_vocab=d_vocab,
            d_vocab_out=shapes["unembed.W_U"][1],
            d_mlp=shapes.get("blocks.0.mlp.W_in", (0, 0))[1],
            normalization="LN" if "ln_final.w" in shapes else "none",
            identity_v=_is_identity(weights, len(layers), "V"),
            identity_o=_is_identity(weights, len(layers), "O"),
        )
    except (KeyError, ValueError) as error:
        raise RaspLensError(f"{path} is no state dict of a HookedTransformer: {error} is missing.") from None
    if unknown := sorted(set(shapes) - set(weight_shapes(config)) - set(bias_shapes(config))):
        raise RaspLensError(
            f"{path} has parts that RASPLens has no model for: {', '.join(unknown[:4])}"
            f"{', …' if len(unknown) > 4 else ''}. It reads models with learned positions."
        )
    return config


def _is_identity(weights: Weights, n_layers: int, letter: str) -> bool:
    matrices = [weights[f"blocks.{layer}.attn.W_{letter}"] for layer in range(n_layers)]
    return all((matrix == np.eye(*matrix.shape[1:])).all() for matrix in matrices)
