from rasp_examples import EQUAL, HIST

from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.backend.residual_layout import lay_out
from rasplens.compile.backend.schedule import ATTENTION, MLP, n_layers, schedule
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.rasp import Aggregate, Comparison, Select, indices, tokens
from rasplens.compile.rasp.input_space import input_space


def places(program) -> dict[str, tuple[int, int]]:
    finite = reachable_values(build_graph(program), input_space([1, 2], 3))
    found = schedule(lay_out(finite, has_bos=True, fold=False))
    return {finite.nodes[i].name: place for i, place in found.items() if place is not None}


def test_every_operation_takes_the_first_place_after_its_inputs():
    program = Aggregate(Select(HIST, indices, Comparison.EQ), tokens).named("moved")
    assert places(program) == {
        "hist (attention on BOS)": (0, ATTENTION),
        "hist": (0, MLP),
        "moved": (1, ATTENTION),
    }


def test_neurons_after_neurons_wait_for_the_next_layer():
    program = ((tokens + 1).named("x") * 2).named("y")
    assert places(program) == {"x": (0, MLP), "y": (1, MLP)}


def test_heads_after_heads_wait_for_the_next_layer():
    first = Aggregate(EQUAL, tokens).named("first")
    assert places(Aggregate(EQUAL, first).named("second")) == {
        "first": (0, ATTENTION),
        "second": (1, ATTENTION),
    }


def test_the_number_of_layers():
    assert n_layers({}) == 1
    assert n_layers({3: (0, MLP), 4: (2, ATTENTION)}) == 3
