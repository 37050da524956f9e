"""How logits are read: as one label of several, as several labels at once, or as a number."""

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from rasplens.compile.rasp import Value
from rasplens.compile.rasp.values import value_key
from rasplens.errors import RaspLensError

Readout = Literal["label", "labels", "number"]
"""How logits give an answer. "label": a logit for each answer, and the highest counts. "labels": a logit for each
label, and the answer is the tuple of those above 0. "number": a single logit, and the answer nearest to it."""


LARGEST = float(np.finfo(np.float32).max)
"""The largest number that a model can give."""


def logit_table(readout: Readout, outputs: Sequence[Value]) -> Float[np.ndarray, "answer logit"] | None:
    """Return the logits that each answer should have: 1 for its labels, or its value; None where each has its own.

    Raises:
        RaspLensError: If the answers are no tuples of labels, or no numbers.
    """
    if readout == "label":
        return None
    if readout not in get_args(Readout):
        raise RaspLensError(f'readout must be "label", "labels" or "number"; got {readout!r}.')
    if readout == "number":
        if strange := [value for value in outputs if not isinstance(value, int | float)]:
            raise RaspLensError(f'With readout="number", answers must be numbers; got {strange[0]!r}.')
        return _numbers(outputs)[:, None]
    if strange := [value for value in outputs if not isinstance(value, tuple)]:
        raise RaspLensError(f'With readout="labels", an answer must be a tuple of labels; got {strange[0]!r}.')
    if not any(outputs):
        raise RaspLensError("No answer has a label: there is nothing to learn.")
    labels = {value_key(label): i for i, label in enumerate(labels_of(outputs))}
    table = np.zeros((len(outputs), len(labels)), dtype=np.float32)
    for row, answer in zip(table, outputs, strict=True):
        row[[labels[value_key(label)] for label in answer]] = 1
    return table


def _numbers(outputs: Sequence[Value]) -> Float[np.ndarray, " answer"]:
    """Answers as a model gives them, in single precision."""
    if large := [value for value in outputs if not abs(value) <= LARGEST]:
        raise RaspLensError(
            f'With readout="number", answers must fit in float32; {str(large[0])[:20]} is too large.'
        )
    found = np.array(outputs, dtype=np.float32)
    order = np.argsort(found, kind="stable")
    if len(same := order[:-1][np.diff(found[order]) == 0]):
        first = next(iter(same))
        twin = next(i for i in order if i != first and found[i] == found[first])
        raise RaspLensError(
            f"The answers {outputs[first]!r} and {outputs[twin]!r} are the same number in single precision, "
            "the precision of a model's answers. Round them, or make them smaller."
        )
    return found


def ordered_labels(labels: Iterable[Value]) -> tuple[Value, ...]:
    """Several labels as an answer: each once, by what they are and their order."""

    def order(label: Value) -> tuple[str, Any]:
        return type(label).__name__, label if isinstance(label, int | float) else repr(label)

    return tuple(sorted({value_key(label): label for label in labels}.values(), key=order))


def labels_of(outputs: Sequence[Value]) -> tuple[Value, ...]:
    """All labels of answers that are tuples of them; the logits have this order."""
    return ordered_labels(label for answer in outputs for label in answer)


def answer_codes(
    table: Float[np.ndarray, "answer logit"] | None, readout: Readout, logits: Any, xp: ModuleType = np
) -> Any:
    """The place of the answer that logits `[..., logit]` give; -1 for nan, and labels that are no answer together.

    Args:
        table: See `logit_table`.
        readout: How logits are read.
        logits: An array of numpy or JAX.
        xp: The one or the other.
    """
    is_nan = xp.isnan(logits).any(axis=-1)
    if table is None:
        return xp.where(is_nan, -1, logits.argmax(axis=-1))
    if readout == "number":
        return xp.where(is_nan, -1, xp.abs(logits[..., :1] - table[:, 0]).argmin(axis=-1))
    same = ((logits > 0)[..., None, :] == (table > 0)).all(axis=-1)
    return xp.where(same.any(axis=-1), same.argmax(axis=-1), -1)
