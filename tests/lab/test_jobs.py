"""Commands of lab/ find what they call. Three once named their jobs without the package, and could not start."""

import ast
import importlib
import importlib.util
from pathlib import Path

LAB = Path(__file__).parents[2] / "lab"

OTHER_TOOLS = [*sorted((LAB / "other_tools").glob("*_scores.py")), LAB / "other_tools" / "exported.py"]
"""What runs in an environment of another tool."""

ELSEWHERE = {"tracr"}

TAKE_JOBS = {"Job", "model_jobs"}
"""What is called with `"module:function"` first."""


def nodes(kind):
    """All nodes of a kind in the modules of lab/, with the module's name."""
    for path in sorted(LAB.rglob("*.py")):
        yield from ((path.name, node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kind))


def test_every_job_is_a_function_that_is_there():
    calls = [(path, node) for path, node in nodes(ast.Call) if getattr(node.func, "id", "") in TAKE_JOBS]
    named = [(path, node.args[0].value) for path, node in calls if isinstance(node.args[0], ast.Constant)]
    assert len(named) > 10
    for path, job in named:
        module, _, function = job.partition(":")
        assert module.startswith("lab."), f"{path}: {job}"
        assert callable(getattr(importlib.import_module(module), function)), f"{path}: {job}"


def test_every_import_is_of_a_package_that_is_there():
    """Those within functions are seen by no import of the module."""
    for path, node in nodes(ast.ImportFrom):
        package = str(node.module).partition(".")[0]
        is_elsewhere = package in ELSEWHERE or path in {file.name for file in OTHER_TOOLS}
        assert is_elsewhere or importlib.util.find_spec(package), f"{path} imports from {node.module}"


def test_scripts_for_other_tools_need_nothing_of_ours():
    """They run in the tool's own environment, from the exported files alone."""
    assert OTHER_TOOLS
    for file in OTHER_TOOLS:
        text = file.read_text()
        assert "import rasplens" not in text
        assert "from rasplens" not in text
        assert "from lab" not in text
