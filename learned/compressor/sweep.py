"""How narrow a program's residual stream may be: every width in a row, with the knee."""

from collections.abc import Sequence

import pandas as pd

from rasplens.compile.compiled import CompiledModel
from rasplens.learned.compressor.compress_model import compress_many
from rasplens.learned.compressor.evaluation import baseline, evaluate
from rasplens.learned.compressor.examples import examples
from rasplens.learned.compressor.recipe import CompressionRecipe
from rasplens.learned.compressor.report import Progress

KEPT = 0.99
"""The share of right answers that a width has to keep to count as enough."""

WIDTHS = 6
"""How many widths a sweep tries, unless told which."""


def sweep(
    compiled: CompiledModel,
    widths: Sequence[int] | None = None,
    recipe: CompressionRecipe | str = "fast",
    seed: int = 0,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Compress a program to each width, and measure what it keeps, beside principal components.

    Args:
        compiled: The model.
        widths: Which; by default up to `WIDTHS` from 1 to the width of the compiled model, evenly.
        recipe: As for `compress`.
        seed: As for `compress`.
        progress: As for `compress`.

    Returns:
        One row per width: columns program, D, d, token, sequence, output_loss, cosine, loss (of the layers),
        pca_token, pca_cosine, dropped and shared (how many features), and is_knee: the least width from which on
        all wider ones keep `KEPT` of the answers.
    """
    wide = compiled.transformer.config.d_model
    chosen = list(dict.fromkeys(widths or spread(wide)))
    on = examples(compiled)
    rows = []
    for model in compress_many(compiled, chosen, (seed,), recipe, progress=progress):
        found, principal = evaluate(model, on), evaluate(baseline(model, on), on)
        fates = found.features["fate"].value_counts()
        rows.append(
            {
                "program": compiled.output,
                "D": wide,
                "d": model.d,
                "token": found.token,
                "sequence": found.sequence,
                "output_loss": found.output_loss,
                "cosine": found.cosine,
                "loss": found.loss,
                "pca_token": principal.token,
                "pca_cosine": principal.cosine,
                "dropped": int(fates.get("dropped", 0)),
                "shared": int(fates.get("shared", 0)),
            }
        )
    table = pd.DataFrame(rows).sort_values("d", ignore_index=True)
    knee = next((d for d in table["d"] if (table.loc[table["d"] >= d, "token"] >= KEPT).all()), None)
    return table.assign(is_knee=table["d"] == knee)


def spread(wide: int) -> list[int]:
    """Widths from 1 to all of them, evenly."""
    steps = min(WIDTHS, wide) - 1
    return sorted({1 + round(i * (wide - 1) / max(1, steps)) for i in range(steps + 1)})
