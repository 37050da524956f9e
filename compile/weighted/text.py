"""A weighted program as text: a line for each of its mixtures and s-ops, and its numbers."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from rasplens.compile.rasp.language import PRIMITIVES, SOp
from rasplens.compile.rasp.program_text import function_text, program_text
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
    said: dict[int, str] = {}
    lines = list(_sops(program, said))
    for part in parts_of(program):
        if isinstance(part, Mix):
            text = f"Mix({_sum(part.scores, said)}, {_text(part.sop, said)})"
            said[id(part)] = f"mix_{sum(name.startswith('mix_') for name in said.values()) + 1}"
            lines.append(f"{said[id(part)]} = {text}")
    lines.append(f"program = Vote({_sum(program.votes, said)}, {_text(program.candidates, said)})")
    numbers = [f"{name} = {_rounded(one)}" for name, one in numbers_of(program).items()]
    return "\n".join([*lines, *([""] if numbers else []), *numbers])


def _sops(program: Vote, said: dict[int, str]) -> Iterator[str]:
    """The lines of the s-ops, each once; what stands for each is its last line's name."""
    written: dict[str, str] = {}
    for sop in sops_of(program):
        if any(sop is primitive for primitive in PRIMITIVES.values()):
            said[id(sop)] = sop.name
            continue
        *before, last = (line.partition(" = ")[::2] for line in program_text(sop).splitlines())
        names = (last[0], *(f"{last[0]}_{i}" for i in range(2, len(written) + 3)))
        said[id(sop)] = name = next(one for one in names if written.get(one, last[1]) == last[1])
        for one, text in (*before, (name, last[1])):
            if one not in written:
                yield f"{one} = {text}"
            written[one] = text


def _sum(terms: Term[Any], said: dict[int, str]) -> str:
    """Terms, each on a line of its own if there are several."""
    texts = [_text(term, said) for term in terms.terms]
    return texts[0] if len(texts) == 1 else "\n    " + "\n    + ".join(texts)


def _text(part: object, said: dict[int, str]) -> str:
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
