"""RASP programs to compile, compare with and learn from."""

from rasplens.compile.programs.compression import slots
from rasplens.compile.programs.copying import induction, offset
from rasplens.compile.programs.sorting import successor

__all__ = ["induction", "offset", "slots", "successor"]
