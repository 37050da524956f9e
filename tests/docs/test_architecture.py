"""The page about the architecture is true: its paths exist, and the import graph is what it says."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()


@pytest.fixture(scope="module")
def drawing():
    return importlib.import_module("lab.architecture")


@pytest.fixture(scope="module")
def imports(drawing):
    return drawing.imports()


def test_every_path_exists():
    paths = re.findall(r"`((?:compile|learned|compare|model|tasks|rasplens|tests|lab)/[\w./]*)`", PAGE)
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_there_is_no_cycle_and_no_arrow_upwards(drawing, imports):
    assert list(drawing.cycles(imports)) == []
    assert list(drawing.upward(imports)) == []


def test_a_cycle_and_an_arrow_upwards_would_be_seen(drawing, imports):
    wrong = imports.copy()
    wrong.add_edge("rasplens.model.config", "rasplens.compile.compiler")
    wrong.add_edge("rasplens.compile.ir", "rasplens.compile.compiler")
    assert any("rasplens.compile.ir" in line for line in drawing.cycles(wrong))
    assert any("rasplens.model.config" in line for line in drawing.upward(wrong))


def test_no_folder_is_too_full(drawing):
    assert "too many" not in drawing.rooms()


def test_every_exception_to_the_import_contracts_is_stated():
    """Both ends of each import that `lint-imports` is told to ignore."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    ignored = [line for contract in contracts for line in contract.get("ignore_imports", [])]
    assert ignored
    modules = {module for line in ignored for module in line.split(" -> ")}
    stated = PAGE[: PAGE.index("## One program")]
    for module in modules:
        assert f"`{module.removeprefix('rasplens.').replace('.', '/')}.py`" in stated


@pytest.fixture(scope="module")
def journey():
    spec = importlib.util.spec_from_file_location("journey", ROOT / "tests" / "tools" / "journey.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_program_comes_back_to_no_room_on_its_way_through_the_compiler(journey):
    stays = journey.through_compile()
    assert stays[0].endswith("compiler")
    assert journey.returns(stays) == 0
    assert journey.returns([*stays, stays[0]]) == 1  # it would be counted


@pytest.mark.slow
def test_a_compiled_model_seldom_comes_back_to_a_module_that_it_left(journey):
    stays = journey.through_compare()
    assert stays[0].endswith("pipeline")
    assert len(stays) > 40  # the negative control: it was followed
    assert journey.returns(stays) <= 6
