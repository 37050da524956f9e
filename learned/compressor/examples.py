"""The inputs on which a compression is trained and evaluated: those on which the program has a value."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.compiled import CompiledModel
from rasplens.compile.errors import CompileError
from rasplens.compile.frontend.defined_program import defined_program
from rasplens.compile.frontend.undefined_inputs import DefinedOn
from rasplens.model import random_streams

MOST = 20_000
"""Input spaces of at most this many sequences are listed in full."""

SAMPLED = 2_000
"""The number of inputs drawn from a larger space for evaluation; training draws others."""

PATIENCE = 50
"""The most draws, each of as many inputs as wanted, if few inputs have a value."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Sequences as the transformer takes them, short ones filled up.

    Attributes:
        tokens: `[input, ctx]`, behind a BOS if the model has one.
        real: Which positions are part of the input; a BOS is.
        exhaustive: Whether these are all the inputs that there are.
    """

    tokens: Int[np.ndarray, "input ctx"]
    real: Bool[np.ndarray, "input ctx"]
    exhaustive: bool


def examples(compiled: CompiledModel, n: int = SAMPLED, seed: int = 0) -> Examples:
    """All inputs on which the program has a value, or a sample of them.

    Args:
        compiled: The model.
        n: How many, if there are too many for all.
        seed: Of the sample.

    Raises:
        CompileError: If the program has a value on hardly any input.
    """
    space = compiled.inputs
    exhaustive = space.size <= MOST
    batches = space.all_ids() if exhaustive else _draws(compiled, n, seed)
    finite = defined_program(compiled.program, space, DefinedOn("allow")).whole
    wanted = space.size if exhaustive else n
    rows: list[np.ndarray] = []
    for ids in batches:
        rows += list(ids[~trace(finite, ids, space.visible).fails()])
        if len(rows) >= wanted:
            break
    if not rows or (not exhaustive and len(rows) < n):
        raise CompileError(
            f"{compiled.output!r} has a value on too few inputs to compress the model on: {len(rows)} of "
            f"{wanted} were found."
        )
    lengths = np.array([len(row) for row in rows[:wanted]])
    tokens = np.zeros((len(lengths), space.max_len), dtype=np.int64)
    real = np.arange(space.max_len) < lengths[:, None]
    tokens[real] = np.concatenate(rows[:wanted])
    with_bos = np.pad(real, ((0, 0), (compiled.offset, 0)), constant_values=True)
    return Examples(compiled.with_bos(tokens), with_bos, exhaustive)


def _draws(compiled: CompiledModel, n: int, seed: int) -> Iterator[np.ndarray]:
    rng = random_streams.rng(seed, "compression inputs")
    for attempt in range(PATIENCE):
        drawn = list(compiled.inputs.sampled_ids(n, seed=seed + 7919 * attempt))
        rng.shuffle(drawn)
        yield from drawn


def masks(
    compiled: CompiledModel, real: Bool[np.ndarray, "input ctx"]
) -> Bool[np.ndarray, "layer input 1 ctx ctx"]:
    """Return the attention mask of each input: what the model lets it see of the input's own positions."""
    return compiled.transformer.mask[:, None, None] & real[:, None, None]
