"""A weighted program as text: a line for each of its mixtures and s-ops, and its numbers."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from rasplens.compile.rasp.language import PRIMITIVES, SOp
from rasplens.compile.rasp.program_text import function_text, program_lines
from rasplens.compile.weighted.language import Expression, Mix, Term, Vote, numbers_of, parts_of, sops_of
from rasplens.compile.weighted.tables import Parametrised

NOT_SAID = "start", "numbers"
"""Arguments that are left out: numbers stand at the end."""

MOST_VALUES = 20
"""Of more values, the first and the last are shown."""


def weighted_text(program: Vote) -> str:
    """The program as Python would have it, a line for each term of a sum, and behind it its numbers.

    Functions are shown by their source where Python still has it, else by their name. Of many values the first and
    the last are shown.
    """
    primitives = [*PRIMITIVES.values()]
    mixtures = [part for part in parts_of(program) if isinstance(part, Mix)]
    names = [f"mix_{number}" for number in range(1, len(mixtures) + 1)]
    sops = [one for one in sops_of(program) if not any(one is primitive for primitive in primitives)]
    lines, of_sops = program_lines(sops, ["program", *names, *numbers_of(program)])
    said = {**of_sops, **{id(one): one.name for one in primitives}}
    for name, part in zip(names, mixtures, strict=True):
        lines.append(f"{name} = Mix({_sum(part.scores, said)}, {_text(part.sop, said)})")
        said[id(part)] = name
    lines.append(f"program = Vote({_sum(program.votes, said)}, {_text(program.candidates, said)})")
    numbers = [f"{name!r}: {_rounded(one)}" for name, one in numbers_of(program).items()]
    return "\n".join([*lines, *(["", *numbers] if numbers else [])])


def _sum(terms: Term[Any], said: Mapping[int, str]) -> str:
    """Terms, each on a line of its own if there are several."""
    texts = [_text(term, said) for term in terms.terms]
    return texts[0] if len(texts) == 1 else "\n    " + "\n    + ".join(texts)


def _text(part: object, said: Mapping[int, str]) -> str:
    """A part with its arguments."""
    if isinstance(part, SOp | Mix) and id(part) in said:
        return said[id(part)]
    if isinstance(part, Expression | Parametrised):
        given = [getattr(part, one.name) for one in fields(part) if one.name not in NOT_SAID]
        return f"{type(part).__name__}({', '.join(_text(one, said) for one in given)})"
    if isinstance(part, tuple) and len(part) > MOST_VALUES:
        return f"({part[0]!r}, ..., {part[-1]!r})"
    return function_text(part) if callable(part) else repr(part)


def _rounded(numbers: np.ndarray) -> str:
    return np.array2string(np.squeeze(numbers), precision=4, separator=", ", threshold=MOST_VALUES)
