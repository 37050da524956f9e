"""The import graph of the package, room by room: drawn for docs/architecture.md, and checked.

python -m lab.architecture                               print it; exit code 1 for a cycle or upward arrow
python -m lab.architecture --write docs/architecture.md  put the drawing and the table into the page
"""

import argparse
import ast
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import networkx as nx

from lab.page import show, table

ROOT = Path(__file__).parents[1]

FLOORS = ("errors", "model", "compile", "tasks", "learned", "compare", "rasplens")
"""The acts, each of which may import those before it; the errors are below all of them."""

STATED = [
    ("rasplens.compile.rasp.language", "rasplens.compile.rasp.interpreter"),
    ("rasplens.compile.rasp.language", "rasplens.compile.rasp.program_view"),
]
"""The stated exceptions: an expression that is called is run, and one that a notebook shows is drawn."""

MOST_MODULES = 12

MOST_PARAMETERS = 6
"""A function with more is counted."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the drawing into")
    arguments = parser.parse_args()
    graph = imports()
    text = f"{mermaid(graph)}\n\n{rooms()}\n\n{size()}"
    show(text, arguments.write, "rooms")
    wrong = [*cycles(graph), *upward(graph)]
    print("\n".join(wrong) or "No cycle, and no arrow upwards.", file=sys.stderr)
    return bool(wrong)


def imports() -> nx.DiGraph:
    """Every import between modules, those inside functions included; edges lead from importer to imported."""
    found = grimp.build_graph("rasplens", cache_dir=None)
    graph = nx.DiGraph()
    for module in found.modules:
        graph.add_edges_from((module, imported) for imported in found.find_modules_directly_imported_by(module))
    graph.remove_edges_from(STATED)
    return graph


def cycles(graph: nx.DiGraph) -> Iterator[str]:
    """Modules, and rooms beside each other, that import each other in a circle."""
    for level in range(2, 6):
        siblings = nx.DiGraph()
        for importer, imported in graph.edges:
            first, second = (".".join(name.split(".")[:level]) for name in (importer, imported))
            if first.rpartition(".")[0] == second.rpartition(".")[0] and first != second:
                siblings.add_edge(first, second)
        for circle in nx.strongly_connected_components(siblings):
            if len(circle) > 1:
                yield f"cycle: {', '.join(sorted(circle))}"


def upward(graph: nx.DiGraph) -> Iterator[str]:
    """Imports of a higher floor."""
    for importer, imported in graph.edges:
        if FLOORS.index(floor(importer)) < FLOORS.index(floor(imported)) and imported != "rasplens":
            yield f"upwards: {importer} imports {imported}"


def floor(module: str) -> str:
    """The act that a module belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else "rasplens"


def room(module: str) -> str:
    """Where a module stands in its act: `act/folder`, or `act/module` beside the folders; or the whole act."""
    act, parts = floor(module), module.split(".")
    return "/".join([act, *parts[2:3]]) if act in DRAWN else act


DRAWN = ("compile", "learned", "compare")
"""The acts that are drawn room by room; the others are one room."""


def mermaid(graph: nx.DiGraph) -> str:
    """The rooms as a drawing in Mermaid, each act a box; arrows lead to what is imported, shortcuts left out."""
    between = {(room(a), room(b)) for a, b in graph.edges if floor(a) == floor(b) and room(a) != room(b)}
    names = {room(name) for name in graph} - set(DRAWN)  # an act itself is no room: it only re-exports
    inside = nx.DiGraph([(a, b) for a, b in between if {a, b} <= names])
    shown = nx.transitive_reduction(inside) if nx.is_directed_acyclic_graph(inside) else inside
    lines = ["```mermaid", "flowchart BT"]
    for act in FLOORS:
        own = sorted(name for name in names if name.partition("/")[0] == act)
        lines += [f"  subgraph {act}", *(f'    {_id(name)}["{name}"]' for name in own), "  end"]
    lines += [f"  {_id(a)} --> {_id(b)}" for a, b in sorted(shown.edges)]
    lines += [f"  {above} ==> {below}" for below, above in itertools.pairwise(FLOORS)]
    return "\n".join([*lines, "```"])


def _id(name: str) -> str:
    return f"{name.replace('/', '_')}_room"


def folders() -> Iterator[Path]:
    """The folders of the package, each once."""
    for act in FLOORS:
        for folder in sorted({path.parent for path in (ROOT / act).rglob("*.py") if not path.is_symlink()}):
            parts = folder.relative_to(ROOT).parts
            if act != "rasplens" or len(parts) == 1 or parts[1] not in FLOORS:
                yield folder


def rooms() -> str:
    """One row per folder: modules on its level, and lines in it."""
    rows = []
    for folder in folders():
        modules = [path for path in folder.glob("*.py") if not path.name.startswith("__")]
        lines = sum(len(path.read_text().splitlines()) for path in folder.glob("*.py"))
        mark = "" if len(modules) <= MOST_MODULES else " (too many)"
        rows.append([f"`{folder.relative_to(ROOT)}/`", f"{len(modules)}{mark}", f"{lines:,}"])
    return table(["folder", "modules", "lines"], rows)


def size() -> str:
    """How many lines there are, and functions with many parameters."""
    texts = {path: path.read_text() for folder in folders() for path in folder.glob("*.py")}
    many = [path for path, text in texts.items() for one in functions(text) if n_parameters(one) > MOST_PARAMETERS]
    of_commands = sum(path.parent.name == "cli" for path in many)
    return (
        f"{sum(len(text.splitlines()) for text in texts.values()):,} lines. {len(many)} functions have more than "
        f"{MOST_PARAMETERS} parameters; {of_commands} of them are commands, whose parameters are options."
    )


def functions(text: str) -> Iterator[ast.FunctionDef]:
    """The functions and methods of a module."""
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))


def n_parameters(function: ast.FunctionDef) -> int:
    """How many parameters a function has, without the object of a method."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


if __name__ == "__main__":
    sys.exit(main())
