"""From the options of a command to the values that its workflow takes."""

from pathlib import Path
from typing import Any

import typer

from rasplens import RaspLensError
from rasplens.cli.options import ActivationName, NormalizationName, PositionsName, Preset

OUTPUTS = "out", "export"
"""Parameters of commands that name what is written; the others name what is read."""


def destination(ctx: typer.Context, path: Path) -> Any:
    """Where a command writes to; whatever else it names is read."""
    from rasplens.output_files import Destination, named_files

    read = [value for name, value in ctx.params.items() if name not in OUTPUTS]
    return Destination(path, named_files(read), force=ctx.params["force"])


def named(*parts: str) -> Path:
    """Return the path of an output that is named after a task."""
    from rasplens.output_files import file_name

    return Path(*map(file_name, parts))


def declared_settings(
    n_heads: int | None,
    positions: PositionsName | None,
    activation: ActivationName | None,
    normalization: NormalizationName | None,
    attn_scale: float | None,
) -> Any:
    """Return the settings declared for a state dict, which its shapes do not tell."""
    from rasplens.learned.importers.readings import Declared

    words = [None if name is None else name.value for name in (positions, activation, normalization)]
    return Declared(n_heads, words[0], words[1], words[2], attn_scale)


def check_has_model(is_given: bool, declared: Any, expected: float | None) -> None:
    """Raises if options describe the user's model, and none is given."""
    from rasplens.learned.importers.readings import NOTHING_DECLARED

    if not is_given and (declared != NOTHING_DECLARED or expected is not None):
        raise RaspLensError(
            "--n-heads, --positions, --activation, --normalization, --attn-scale and --expect describe a model "
            "of your own. Give it with --learned, or omit them."
        )


def compare_config(preset: Preset, inputs: int | None) -> Any:
    """The config of a comparison by its name, with a number of inputs if one is given."""
    from rasplens.compare.config import get_config

    return get_config(preset.value) if inputs is None else get_config(preset.value, n_inputs=inputs)
