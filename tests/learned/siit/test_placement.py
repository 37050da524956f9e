"""Which parts read which, and which choices of nodes are refused."""

import pytest

from rasplens.compile import programs
from rasplens.errors import RaspLensError
from rasplens.learned.siit.circuit import Node, circuit_of
from rasplens.learned.siit.placement import check_order, reads
from rasplens.tasks import compile_for, task_from_program


def test_parts_read_those_before(compiled, parts):
    names = [part.variables[0] for part in parts]
    order = reads(compiled, parts)
    assert {(names[a], names[b]) for a, b in order} == {("previous", "is_same"), ("is_same", "again")}


@pytest.mark.parametrize("program", [programs.sort(), programs.histogram(), programs.sort_unique()])
def test_where_the_compiled_model_has_its_parts_is_in_order(program):
    """Parts of several heads, MLPs of several variables, and a BOS."""
    compiled = compile_for(task_from_program(program, (1, 2, 3), 4))
    check_order(compiled, circuit_of(compiled))


def test_a_part_before_one_that_it_reads_is_refused(compiled, parts):
    previous, is_same, again = parts
    with pytest.raises(RaspLensError, match=r"L0 MLP .*'previous' .*L1H1"):
        check_order(compiled, {Node(1, 1): previous, Node(0): is_same, Node(1, 2): again})
