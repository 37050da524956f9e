"""RASP programs and the transformers that compute them: the ground truth of a comparison."""

from rasplens.compile import programs, rasp
from rasplens.compile.artefact import load_compiled
from rasplens.compile.compiled import CompiledModel, Variable
from rasplens.compile.compiler import compile_program
from rasplens.compile.compression import CompressedModel, compress, load_compressed
from rasplens.compile.errors import CausalWarning, CompileError, CompressionError, UndefinedValue
from rasplens.compile.interpreter import run
from rasplens.compile.tracr import from_tracr, from_tracr_program
from rasplens.compile.verify import Verification, verify

__all__ = [
    "CausalWarning",
    "CompileError",
    "CompiledModel",
    "CompressedModel",
    "CompressionError",
    "UndefinedValue",
    "Variable",
    "Verification",
    "compile_program",
    "compress",
    "from_tracr",
    "from_tracr_program",
    "load_compiled",
    "load_compressed",
    "programs",
    "rasp",
    "run",
    "verify",
]
