"""Every mutant is a line that is there: one that is not would be noticed by no test."""

from pathlib import Path

import pytest
from mutants import load, module_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", load(), ids=lambda mutant: mutant.line.strip()[:60])
def test_its_line_stands_once(mutant):
    assert module_of(mutant.line, mutant.act, ROOT) is not None
    assert mutant.instead != mutant.line
