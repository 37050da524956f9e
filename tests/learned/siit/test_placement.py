"""Which node each part gets, and which choices are refused."""

import numpy as np
import pytest

from rasplens.compile import programs
from rasplens.learned import ordinary_architecture
from rasplens.learned.siit.circuit import Node, circuit_of, nodes_of
from rasplens.learned.siit.placement import check_order, could_stand_for, placed, reads
from rasplens.tasks import compile_for, task_from_program


@pytest.fixture(scope="module")
def order(compiled, parts):
    return reads(compiled, parts)


def shares_of(parts, nodes, wanted):
    """Nearly all of each part's share at one node."""
    found = np.where(could_stand_for(parts, nodes), 1e-3, 0.0)
    for part, node in enumerate(wanted):
        found[part, nodes.index(node)] = 1.0
    return found


def test_parts_read_those_before(parts, order):
    names = [part.variables[0] for part in parts]
    assert {(names[a], names[b]) for a, b in order} == {("previous", "is_same"), ("is_same", "again")}


def test_each_part_is_where_its_share_is_largest(parts, nodes, order):
    wanted = [Node(0, 3), Node(0), Node(1, 2)]
    assert placed(shares_of(parts, nodes, wanted), parts, nodes, order) == dict(zip(wanted, parts, strict=True))


def test_a_part_stands_behind_what_it_reads_whatever_the_shares_say(parts, nodes, order):
    found = placed(shares_of(parts, nodes, [Node(1, 1), Node(0), Node(0, 2)]), parts, nodes, order)
    previous, is_same, again = (next(node for node, part in found.items() if part == one) for one in parts)
    assert (previous.layer, is_same.layer, again.layer) == (0, 0, 1)
    assert list(found) == [previous, is_same, again]


def test_two_parts_never_have_the_same_node():
    compiled = compile_for(task_from_program(programs.sort(), (1, 2, 3), 4))
    parts, nodes = tuple(circuit_of(compiled).values()), tuple(nodes_of(ordinary_architecture(compiled)))
    both = [number for number, part in enumerate(parts) if part.layer == 0 and part.heads]
    shares = np.where(could_stand_for(parts, nodes), 1e-3, 0.0)
    shares[both, 0] = 1.0
    found = placed(shares, parts, nodes, frozenset())
    assert len(both) > 1
    assert set(found.values()) == set(parts)  # one node each


@pytest.mark.parametrize("program", [programs.sort(), programs.histogram(), programs.sort_unique()])
def test_where_the_compiled_model_has_its_parts_is_in_order_and_so_is_any_choice(program):
    """Parts of several heads, MLPs of several variables, and a BOS."""
    compiled = compile_for(task_from_program(program, (1, 2, 3), 4))
    circuit = circuit_of(compiled)
    check_order(compiled, circuit)
    parts, nodes = tuple(circuit.values()), tuple(nodes_of(ordinary_architecture(compiled)))
    for seed in range(5):
        shares = np.random.default_rng(seed).random((len(parts), len(nodes))) * could_stand_for(parts, nodes)
        chosen = placed(shares, parts, nodes, reads(compiled, parts))
        check_order(compiled, chosen)
        assert set(chosen.values()) == set(parts)
