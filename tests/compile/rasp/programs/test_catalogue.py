import pytest

from rasplens.compile import compile_program, programs, verify
from rasplens.compile.rasp.programs.catalogue import CATALOGUE


def test_every_program_of_the_library_is_in_it():
    assert list(CATALOGUE) == programs.__all__


@pytest.mark.parametrize("name", CATALOGUE)
def test_each_compiles_on_its_inputs_to_what_it_says(name):
    entry = CATALOGUE[name]
    compiled = compile_program(entry.build(), entry.vocab, entry.max_len, **dict(entry.options))
    found = verify(compiled, samples=300)
    assert found.ok, str(found)
    assert found.undefined < found.checked / 2
