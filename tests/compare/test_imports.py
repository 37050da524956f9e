"""Imports inside `compare` point one way: down from the assertions to the configuration."""

import pytest

grimp = pytest.importorskip("grimp", reason="import-linter is not installed")

LAYERS = (
    "testing",
    "pipeline",
    "ranking",
    "analyses",
    "report",
    "comparison",
    "verdict",
    "evidence",
    "models",
    "config",
)
"""The parts of `compare`, each of which imports only what stands below it."""


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("rasplens", cache_dir=None)


def test_no_part_imports_what_stands_above_it(graph):
    assert not graph.find_illegal_dependencies_for_layers(layers=LAYERS, containers={"rasplens.compare"})
    assert graph.find_illegal_dependencies_for_layers(layers=LAYERS[::-1], containers={"rasplens.compare"})


def test_no_module_imports_the_front_door(graph):
    inside = graph.find_descendants("rasplens.compare")
    assert not graph.find_modules_that_directly_import("rasplens.compare") & inside
