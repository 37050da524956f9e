import re
from dataclasses import replace

import pytest

from rasplens.compile import compile_program, programs
from rasplens.errors import RaspLensError
from rasplens.learned import ordinary_architecture
from rasplens.learned.siit.circuit import CompiledPart, Node, check_has_nodes, circuit_of, nodes_of


def test_each_part_has_a_node_in_its_own_layer(compiled):
    assert circuit_of(compiled) == {
        Node(0, 0): CompiledPart(("previous",), 0, (0,)),
        Node(0): CompiledPart(("is_same",), 0),
        Node(1, 0): CompiledPart(("again",), 1, (0,)),
    }


def test_all_neurons_of_a_layer_have_one_node_and_each_variable_of_heads_its_own():
    sort = compile_program(programs.sort(), (1, 2, 3), 4)
    circuit = circuit_of(sort)
    assert [part.variables for node, part in circuit.items() if node.layer == 0 and node.is_head] == [
        ("smaller (attention on BOS)",),
        ("equal_before (attention on BOS)",),
    ]
    assert circuit[Node(0)].variables == ("smaller as numerical", "equal_before as numerical")
    held = [name for part in circuit.values() for name in part.variables]
    assert sorted(held) == sorted({*sort.heads.values(), *sort.neurons.values()})


def test_nodes_are_heads_and_mlps_where_there_are_any(compiled):
    shape = ordinary_architecture(compiled)
    assert [str(node) for node in nodes_of(shape)][:6] == ["L0H0", "L0H1", "L0H2", "L0H3", "L0 MLP", "L1H0"]
    assert Node(0) not in nodes_of(replace(shape, d_mlp=0))
    assert [node.point for node in (Node(1, 2), Node(1))] == ["blocks.1.attn.hook_z", "blocks.1.hook_mlp_out"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"d_mlp": 0}, "no L0 MLP, which is to compute 'is_same'"),
        ({"n_layers": 1}, "no L1H0, which is to compute 'again'"),
    ],
)
def test_an_architecture_without_a_node_is_refused(compiled, fields, message):
    shape = ordinary_architecture(compiled)
    check_has_nodes(shape, circuit_of(compiled))
    with pytest.raises(RaspLensError, match=re.escape(message)):
        check_has_nodes(replace(shape, **fields), circuit_of(compiled))
