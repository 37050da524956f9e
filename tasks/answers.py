"""Answers of each kind of model: the values of a program, those of a compiled model, or the logits of others."""

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compile import CompiledModel
from rasplens.compile.rasp import SOp, Value
from rasplens.compile.rasp.batch_interpreter import UNDEFINED, BatchInterpreter
from rasplens.errors import RaspLensError
from rasplens.model import transformer_of

BATCH = 1_024
"""Inputs per batch."""


def program_answers(
    program: SOp,
    vocab: Sequence[Value],
    ids: Int[np.ndarray, "batch pos"],
    visible: Bool[np.ndarray, "query key"],
    positions: Sequence[int],
) -> tuple[list[Value], Int[np.ndarray, "batch answer"]]:
    """The values of a program, the first of them None, and which one it has at some positions of each input.

    It need not be defined where these read nothing. Where it is not defined, that is None.

    Args:
        program: The program.
        vocab: The tokens.
        ids: The inputs.
        visible: What selectors may see.
        positions: Where answers are read.
    """
    tables = BatchInterpreter(program, vocab, visible)
    codes, is_defined = tables.where_defined(ids)
    at = list(positions)
    return tables.values, np.where(is_defined[:, at], codes[:, at], UNDEFINED)


def compiled_codes(
    compiled: CompiledModel, sequences: Sequence[Sequence[Value]], positions: Sequence[int]
) -> Int[np.ndarray, "batch answer"]:
    """The codes of a compiled model's result at some positions; -1 where it is undefined."""
    output, tokens = compiled.variables[compiled.output], compiled.encode(sequences)
    parts = np.split(tokens, range(BATCH, len(tokens), BATCH))
    places = [compiled.offset + position for position in positions]
    return np.concatenate([output.decode(compiled.transformer(part)[:, places]) for part in parts])


def logits(
    model: Any, ids: Int[np.ndarray, "batch pos"], positions: Sequence[int]
) -> Float[np.ndarray, "batch answer logit"]:
    """The logits at some positions: of a transformer, of what has one, or of a torch module of token ids.

    A model that says so reads inputs behind its `prefix`. Of a module that returns several things, the first
    counts, or what is called `logits`.

    Raises:
        RaspLensError: If it is no model, or gives no logits at every position.
    """
    prefix = getattr(model, "prefix", ())
    places = [len(prefix) + position for position in positions]
    parts = np.split(behind(prefix, ids), range(BATCH, len(ids), BATCH))
    return np.concatenate([_logits(model, part)[:, places] for part in parts])


def behind(prefix: Sequence[int], ids: Int[np.ndarray, "batch pos"]) -> Int[np.ndarray, "batch ctx"]:
    """Inputs behind ids that stand before every one, such as a BOS."""
    return np.concatenate([np.tile(np.array(prefix, dtype=ids.dtype), (len(ids), 1)), ids], axis=1)


def _logits(model: Any, ids: Int[np.ndarray, "batch pos"]) -> Float[np.ndarray, "batch pos logit"]:
    if (transformer := transformer_of(model)) is not None:
        return transformer(ids)
    import torch

    if not callable(model):
        what = "A model is a program, a CompiledModel, a Transformer, an object that has one, or a torch module"
        raise RaspLensError(f"{what}; got {reprlib.repr(model)}.")
    with torch.no_grad():
        parameters = model.parameters() if isinstance(model, torch.nn.Module) else iter(())
        device = next((parameter.device for parameter in parameters), None)
        found = model(torch.as_tensor(ids, device=device))
    found = found[0] if isinstance(found, tuple) else getattr(found, "logits", found)
    if not isinstance(found, torch.Tensor) or found.ndim != 3 or found.shape[:2] != ids.shape:
        got = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise RaspLensError(f"A model gives logits [batch, pos, logit] for ids of shape {ids.shape}; got {got}.")
    return np.asarray(found.float().cpu().numpy())
