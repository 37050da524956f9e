import doctest
import itertools

from rasplens.compile import compile_program, run, verify
from rasplens.compile.rasp.programs import sorting


def test_the_examples_in_the_docstrings():
    found = doctest.testmod(sorting)
    assert found.attempted > 0
    assert found.failed == 0


def test_every_output_position_of_every_short_list_is_right():
    """Enumerated: all lists of three values, prefix by prefix, as a model would be fed them."""
    program = sorting.successor(3)
    for values in itertools.product(range(3), repeat=3):
        ordered = sorted(values)
        sequence = ["BOS", *values, "MID", *ordered]
        assert run(program, sequence, causal=True)[4:7] == ordered


def test_compiled_it_equals_the_interpreter_on_any_sequence_at_all():
    compiled = compile_program(sorting.successor(2), [0, 1, "BOS", "MID"], 6, causal=True)
    found = verify(compiled)
    assert found.ok
    assert found.exhaustive


def test_markers_are_no_integers():
    assert sorting.is_integer(0)
    assert not sorting.is_integer("MID")


def test_next_larger_writes_out_lists_without_repetitions_only():
    program = sorting.next_larger()
    for values in itertools.product(range(4), repeat=3):
        ordered = sorted(values)
        written = run(program, ["BOS", *values, "MID", *ordered[:2]], causal=True)[4:]
        assert (written == ordered) == (len(set(values)) == 3)


def test_next_larger_compiles_to_what_it_says():
    found = verify(compile_program(sorting.next_larger(), [0, 1, 2, "BOS"], 5, causal=True))
    assert found.ok
    assert found.exhaustive
