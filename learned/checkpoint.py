"""Models from elsewhere: our own files, and state dicts of legacy TransformerLens."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rasplens.learned.learned import LearnedModel, load_learned
from rasplens.model import Config, StorageError, Transformer, bias_shapes, weight_shapes
from rasplens.tasks import Task

BUFFERS = re.compile(r"blocks\.\d+\.attn\.(mask|IGNORE)$")
"""Entries of a legacy state dict that are no weights."""

Weights = Mapping[str, np.ndarray]


def import_checkpoint(path: str | Path, task: Task) -> LearnedModel:
    """A user's own model for a task.

    Args:
        path: A file that RASPLens wrote, or a state dict of a legacy `HookedTransformer` (`.pt`), whose
            architecture is inferred from the shapes and whose attention mask is the task's.
        task: What it learned.

    Raises:
        StorageError: If the file is missing, damaged or of no known kind.
        ValueError: If the model does not fit the task; the message says what differs.
    """
    path = Path(path)
    if not path.is_file():
        raise StorageError(f"There is no file {path}.")
    model = load_learned(path) if _is_safetensors(path) else _legacy(path, task)
    if model.task != task.name:
        raise ValueError(f"{path} learned the task {model.task!r}, not {task.name!r}.")
    check_fits(model.transformer.config, task, str(path))
    return model


def check_fits(config: Config, task: Task, what: str) -> None:
    """Raises where a model's shape does not fit a task.

    Raises:
        ValueError: Naming every size that differs.
    """
    sizes = {
        "tokens (d_vocab)": (config.d_vocab, len(task.vocab)),
        "logits (d_vocab_out)": (config.d_vocab_out, len(task.outputs)),
        "positions (n_ctx)": (config.n_ctx, task.n_ctx),
    }
    differing = [f"{got} {name} where it needs {want}" for name, (got, want) in sizes.items() if got != want]
    if differing:
        raise ValueError(f"{what} does not fit the task {task.name!r}: it has {', '.join(differing)}.")


def _is_safetensors(path: Path) -> bool:
    """Whether a file starts as safetensors do: the size of a header, then the header's brace."""
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def _legacy(path: Path, task: Task) -> LearnedModel:
    weights = {name: a for name, a in _read_state_dict(path).items() if not BUFFERS.search(name)}
    config = infer_config(weights, path)
    check_fits(config, task, str(path))
    transformer = Transformer(config, weights, task.mask(config.n_layers))
    return LearnedModel(transformer, task.name, {"origin": f"imported from {path.name}"})


def _read_state_dict(path: Path) -> dict[str, np.ndarray]:
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise StorageError(
            f"{path} is neither a RASPLens model nor a state dict that torch can load safely ({reason})."
        ) from None
    if not isinstance(state, Mapping) or not all(isinstance(v, torch.Tensor) for v in state.values()):
        raise StorageError(f"{path} holds no state dict (a mapping from names to tensors).")
    return {name: tensor.numpy() for name, tensor in state.items()}


def infer_config(weights: Weights, path: Path) -> Config:
    """The architecture of a legacy state dict, from its names and shapes.

    Raises:
        ValueError: If it has parts that this package has no model for, or lacks some.
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
            identity_v=_is_identity(weights, len(layers), "V"),
            identity_o=_is_identity(weights, len(layers), "O"),
        )
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path} is no state dict of a HookedTransformer: {error} is missing.") from None
    if unknown := sorted(set(shapes) - set(weight_shapes(config)) - set(bias_shapes(config))):
        raise ValueError(
            f"{path} has parts that RASPLens has no model for: {', '.join(unknown[:4])}"
            f"{', …' if len(unknown) > 4 else ''}. It reads models without layer norm and with learned positions."
        )
    return config


def _is_identity(weights: Weights, n_layers: int, letter: str) -> bool:
    matrices = [weights[f"blocks.{layer}.attn.W_{letter}"] for layer in range(n_layers)]
    return all((matrix == np.eye(*matrix.shape[1:])).all() for matrix in matrices)
