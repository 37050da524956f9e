"""Small programs to compress: one that gives numbers, one that gives classes, on all their inputs."""

import pytest

from rasplens.compile import compile_program, programs
from rasplens.compile.rasp import tokens
from rasplens.learned import compress
from rasplens.learned.compressor import CompressionRecipe

SHORT = CompressionRecipe(300, 64, 1e-2, 1e-3)


@pytest.fixture(scope="session")
def frac():
    program = programs.frac_prevs((tokens == "x").named("is_x"))
    return compile_program(program, "abx", 4, causal=True, optimize=False, bos=True)


@pytest.fixture(scope="session")
def unique():
    return compile_program(programs.sort_unique(), (1, 2, 3), 3, partial="allow")


@pytest.fixture(scope="session")
def narrow_frac(frac):
    return compress(frac, 5, SHORT)


@pytest.fixture(scope="session")
def narrow_unique(unique):
    return compress(unique, 8, SHORT)
