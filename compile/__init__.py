"""RASP programs and the transformers that compute them: the ground truth of a comparison."""

from rasplens.compile import rasp
from rasplens.compile.compiled import CompiledModel, load_compiled
from rasplens.compile.compiler import compile_program
from rasplens.compile.errors import (
    CausalWarning,
    CompileError,
    PrecisionError,
    PrecisionWarning,
    RaspTextError,
    UndefinedValue,
)
from rasplens.compile.limits import CompileLimits
from rasplens.compile.planting import PlantedModel, plant
from rasplens.compile.rasp import programs
from rasplens.compile.rasp.interpreter import run
from rasplens.compile.rasp.program_text import program_text
from rasplens.compile.rasp_text import RaspFile, parse_rasp, read_rasp
from rasplens.compile.tracr_import import from_tracr, from_tracr_program
from rasplens.compile.variable import Variable
from rasplens.compile.verify import Verification, verify

__all__ = [
    "CausalWarning",
    "CompileError",
    "CompileLimits",
    "CompiledModel",
    "PlantedModel",
    "PrecisionError",
    "PrecisionWarning",
    "RaspFile",
    "RaspTextError",
    "UndefinedValue",
    "Variable",
    "Verification",
    "compile_program",
    "from_tracr",
    "from_tracr_program",
    "load_compiled",
    "parse_rasp",
    "plant",
    "program_text",
    "programs",
    "rasp",
    "read_rasp",
    "run",
    "verify",
]
