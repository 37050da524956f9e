"""The weights of a Hugging Face folder: all that its config describes, and nothing else."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import safetensors

from rasplens.errors import RaspLensError
from rasplens.model.storage import check_size

MOST_MISSING = 2
"""A config that describes more than so many times the numbers in the files is refused before memory is allocated.
Of smaller ones, the missing tensors are named."""

LAYERS = "num_hidden_layers", "n_layer", "n_layers", "num_layers"
"""Names of the number of layers in the configs of transformers."""

N_NAMED = 3
"""Tensors of each kind that a message names."""


def complete_model(folder: Path, described: Mapping[str, Any]) -> Any:
    """Return the language model of a folder in single precision, with every weight from its files.

    Args:
        folder: The folder.
        described: What its `config.json` says.

    Raises:
        RaspLensError: If the files lack tensors of the model that the config describes, or have others, or other
            shapes: a library would draw the missing ones at random.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    n_tensors, n_numbers = _held(folder)
    if (n_layers := _layers(described)) > n_tensors:
        raise RaspLensError(f"its config.json describes {n_layers:,} layers; its files hold {n_tensors} tensors.")
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    _check_room(config, n_numbers)
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        folder,
        config=config,
        dtype="float32",
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        ignore_mismatched_sizes=True,  # which the report names
        output_loading_info=True,
    )
    model, report = loaded
    _check_complete(report)
    return model.eval()


def _held(folder: Path) -> tuple[int, int]:
    """Return how many tensors the files of a folder hold, and how many numbers."""
    shapes: list[list[int]] = []
    for path in filter(Path.is_file, folder.glob("*.safetensors")):
        check_size(path)
        with safetensors.safe_open(path, framework="pt") as file:
            shapes += [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118 - it is no mapping
    return len(shapes), sum(map(math.prod, shapes))


def _layers(config: Mapping[str, Any]) -> int:
    """Return how many layers a config names."""
    return max((n for name in LAYERS if type(n := config.get(name)) is int), default=0)


def _check_room(config: Any, n_numbers: int) -> None:
    """Raises where a config describes far more numbers than there are."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        described = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    wanted = sum(parameter.numel() for parameter in described.parameters())
    if wanted > MOST_MISSING * n_numbers:
        raise RaspLensError(f"its config.json describes {wanted:,} numbers; its files hold {n_numbers:,}.")


def _check_complete(report: Mapping[str, Any]) -> None:
    """Raises unless a loading report says that files and config agree, tensor by tensor."""
    shapes = [
        f"{name} ({tuple(its)} where it should be {tuple(wanted)})"
        for name, its, wanted in report["mismatched_keys"]
    ]
    wrong = {
        "lack": report["missing_keys"],
        "have the extra tensors": report["unexpected_keys"],
        "have the wrong shape for": shapes,
        "fail on": report["error_msgs"],
    }
    said = [f"{verb} {_named(names)}" for verb, names in wrong.items() if names]
    if said:
        raise RaspLensError(
            f"its files and its config.json describe different models: its files {'; they '.join(said)}. Correct "
            "config.json, or save the model again."
        )


def _named(names: Iterable[str]) -> str:
    first, n = sorted(names)[:N_NAMED], len(list(names))
    return ", ".join(first) + (f" and {n - N_NAMED} more" if n > N_NAMED else "")
