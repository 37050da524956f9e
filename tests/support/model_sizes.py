"""How large a program's model is after some passes: `from model_sizes import size`."""

from collections.abc import Collection, Sequence
from typing import Any

from rasplens.compile import compile_program
from rasplens.compile.rasp import SOp
from rasplens.model import Config


def size(program: SOp, passes: Collection[str], vocab: Sequence[Any] = "ab", max_len: int = 4) -> Config:
    return compile_program(program, vocab, max_len, optimize=passes).transformer.config
