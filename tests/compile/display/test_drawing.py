import pytest

from rasplens.compile import compile_program, programs
from rasplens.compile.display.drawing import (
    direction_labels,
    draw_program,
    draw_residual_stream,
    program_graph,
)
from rasplens.model.config import residual_points


def test_every_expression_stands_right_of_what_it_reads():
    graph = program_graph(programs.sort_unique())
    labels = [facts["label"] for _, facts in graph.nodes(data=True)]
    assert labels == ["tokens", "smaller", "target_pos", "indices", "select", "sort_unique"]
    assert all(graph.nodes[i]["depth"] < graph.nodes[j]["depth"] for i, j in graph.edges)
    figure = draw_program(programs.sort_unique())
    drawn = {text for trace in figure.data for text in trace.text}
    assert {"tokens", "indices", "target_pos", "sort_unique"} <= drawn
    assert len(figure.layout.annotations) == graph.number_of_edges()


def test_the_residual_stream_is_drawn_with_a_label_for_every_direction():
    compiled = compile_program(programs.reverse(), ["a", "b"], 3)
    figure = draw_residual_stream(compiled, ["a", "b"])
    assert len(figure.data) == len(residual_points(compiled.transformer.config)) == 7
    first, last = figure.data[0], figure.data[-1]
    assert list(last.y) == direction_labels(compiled)
    assert list(last.x) == ["0 BOS", "1 a", "2 b"]
    row = list(last.y).index("reverse:b")
    assert list(last.z[row].round(3)) == [0, 1, 0]
    assert not first.z[row].any()


def test_labels_are_those_of_the_variables():
    compiled = compile_program(programs.frac_prevs(programs.count("x") > 0), ["a", "x"], 3)
    labels = direction_labels(compiled)
    assert len(labels) == compiled.transformer.config.d_model
    assert {"frac_prevs", "BOS"} <= set(labels)
    assert len(set(labels)) == len(labels)


def test_a_sequence_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"'z' at position 0.*vocabulary"):
        draw_residual_stream(compile_program(programs.reverse(), ["a", "b"], 3), ["z"])
