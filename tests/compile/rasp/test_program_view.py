"""What notebooks show: the program's own text and graph, and names that stay text."""

import re

from rasplens.compile import program_text, programs
from rasplens.compile.rasp import tokens
from rasplens.compile.rasp.program_graph import program_graph
from rasplens.compile.rasp.program_view import MOST_NODES, graph_svg


def test_a_program_is_its_words_its_text_and_its_graph():
    program = programs.induction()
    shown, graph = program._repr_html_(), program_graph(program)
    assert program.annotations["about"] in shown
    assert program_text(program).splitlines()[1] in shown
    assert shown.count("<line ") == graph.number_of_edges() == 8
    assert shown.count("<rect ") == len(graph)
    assert shown.count('rx="0"') == 2  # selectors
    labels = re.findall(r"<text [^>]*>(.*?)</text>", shown)
    assert sorted(labels) == sorted(label for _, label in graph.nodes(data="label"))


def test_a_large_program_is_shown_as_text():
    program = tokens
    for i in range(MOST_NODES + 1):
        program = (program + 1).named(f"step_{i}")
    assert graph_svg(program) == ""
    assert f"step_{MOST_NODES}" in program._repr_html_()


def test_names_stay_text():
    shown = (tokens == "<script>").named("<b>x</b>")._repr_html_()
    assert "<script>" not in shown
    assert "<b>x</b>" not in shown
    assert "&lt;script&gt;" in shown
