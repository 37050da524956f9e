"""Who imports whom inside `rasplens.compile`: no cycles, lazy imports included, and packages in their order."""

import ast
from pathlib import Path

import networkx as nx
import pytest

import rasplens.compile

ROOT = Path(rasplens.compile.__file__).parent
PACKAGE = "rasplens.compile"
ORDER = ("rasp", "ir", "analysis", "frontend", "passes", "backend", "compiled", "compiler")

ALLOWED = {
    ("rasplens.compile.rasp.language", "rasplens.compile.rasp.interpreter"),
    ("rasplens.compile.rasp.language", "rasplens.compile.rasp.program_view"),
}
"""An expression is called like a function, and shown by a notebook: what it then says is defined elsewhere."""


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


@pytest.fixture(scope="module")
def imports() -> nx.DiGraph:
    """Every import, wherever it stands; what a package re-exports from itself is named by the module."""
    known = modules()
    graph = nx.DiGraph()
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    graph.add_edge(name, whole if whole in known else node.module)
            elif isinstance(node, ast.Import):
                graph.add_edges_from((name, a.name) for a in node.names if a.name in known)
    graph.remove_edges_from(ALLOWED)
    return graph


def test_no_module_imports_itself_through_others(imports):
    assert not list(nx.simple_cycles(imports))


def test_packages_come_one_after_the_other(imports):
    def package(module: str) -> str | None:
        name = module.removeprefix(f"{PACKAGE}.").split(".")[0]
        return name if name in ORDER else None

    for importing, imported in imports.edges:
        pair = package(importing), package(imported)
        if None not in pair:
            assert ORDER.index(pair[1]) <= ORDER.index(pair[0]), (importing, imported)


def test_the_expected_imports_are_seen(imports):
    """The negative control: lazy ones too, of which one is allowed."""
    assert imports.has_edge("rasplens.compile.compiled", "rasplens.compile.storage.anatomy_files")
    assert "from rasplens.compile.rasp.interpreter" in modules()["rasplens.compile.rasp.language"].read_text()
