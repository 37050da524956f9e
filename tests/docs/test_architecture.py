"""The page about the architecture is true: its paths exist, and the import graph is what it says."""

import importlib
import re
import tomllib
from pathlib import Path

import journey
import pytest
from static_journey import Territory, static_stays

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()


@pytest.fixture(scope="module")
def drawing():
    pytest.importorskip("grimp", reason="grimp is not installed")  # it comes with [dev]
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


def test_parameters_are_counted_without_the_object_of_a_method(drawing):
    text = "class A:\n def f(self, a, /, b, *args, c=1, **more): ...\ndef g(): ..."
    assert [drawing.n_parameters(one) for one in drawing.functions(text)] == [0, 3]
    assert "functions have more than 6 parameters" in drawing.size()


def test_every_exception_to_the_import_contracts_is_stated():
    """Both ends of each import that `lint-imports` is told to ignore."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    ignored = [line for contract in contracts for line in contract.get("ignore_imports", [])]
    assert ignored
    modules = {module for line in ignored for module in line.split(" -> ")}
    stated = PAGE[: PAGE.index("## One program")]
    for module in modules:
        assert f"`{module.removeprefix('rasplens.').replace('.', '/')}.py`" in stated


def test_a_program_comes_back_to_no_room_on_its_way_through_the_compiler():
    stays = journey.through_compile()
    assert stays[0].endswith("compiler")
    assert journey.returns(stays) == 0
    assert journey.returns([*stays, stays[0]]) == 1  # it would be counted


@pytest.mark.slow
def test_a_compiled_model_seldom_comes_back_to_a_module_that_it_left():
    stays = journey.through_compare()
    assert stays[0].endswith("pipeline")
    assert len(stays) > 40  # the negative control: it was followed
    assert journey.returns(stays) <= 6
    read = {stay.module for side in ("reference", "learned") for stay in journey.as_read()[f"compare's {side}"]}
    assert set(stays) <= read  # the walk through the source misses no module


def test_all_three_are_followed_through_the_source():
    found = journey.as_read()
    rooms = [len({stay.module for stay in stays}) for stays in found.values()]
    assert min(rooms[:2]) > 30  # the negative control: the whole comparison is read
    assert rooms[2] > 5
    reference, learned, program = (sum(stay.is_return for stay in stays) for stays in found.values())
    assert learned > 0
    assert reference <= 60
    assert program <= 5


THIRD = """
class Box:
    inner: "Box"
    other: "Box"
    def take(self, it): pass
def deep(it): pass
def shallow(it): pass
ROW = Kind(test=shallow, judge=lambda it: deep(it))
LAST = Kind(test=lambda it: None, judge=lambda it: None)
ROWS = (ROW, LAST)
"""

SECOND = """
from small.third import Box, deep
def one(it): deep(it)
def two(it): pass
def boxed(it) -> Box: return Box(it)
"""

FIRST = """
from functools import partial
from small.second import boxed, one, two
from small.third import ROWS, Box, deep
def own(it): pass
def start(it, aside):
    {body}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("pass", "first"),
        ("one(it)", "first second third"),
        ("one(it); one(it)", "first second third"),  # each is read once
        ("one(aside); two(aside)", "first"),  # not handed on
        ("one(it); two(it)", "first second third first second*"),
        ("two(deep(it))", "first third"),  # the result is no carrier
        ("deep(it); two(it)", "first third first second"),  # to come back to the caller is no return
        ("deep(it); own(it)", "first third first*"),
        ("box = boxed(it); deep(box)", "first second first third"),
        ("box = boxed(it); deep(box.inner)", "first second first third"),
        ("box = boxed(it); deep(box.other)", "first second"),
        ("for name, each in {'it': it}.items(): two(each)", "first second"),
        (
            "for kind in ROWS: kind.test(it); two(it); kind.judge(it)",  # row by row
            "first third first second first third* first third* first third*",
        ),
        ("Box(aside).take(it)", "first third"),
        ("partial(two, it)", "first second"),
    ],
)
def test_a_walk_through_the_source_of_a_small_package(tmp_path, body, expected):
    (tmp_path / "small").mkdir()
    for name, text in (("first", FIRST.format(body=body)), ("second", SECOND), ("third", THIRD)):
        (tmp_path / f"small/{name}.py").write_text(text)
    stays = static_stays(Territory(tmp_path, "small", {"Box"}, {"other"}), "small.first", "start", "it")
    assert " ".join(stay.module.removeprefix("small.") + "*" * stay.is_return for stay in stays) == expected


def test_a_walk_begins_at_a_function_that_there_is():
    with pytest.raises(ValueError, match=r"pipeline has no function 'compared'"):
        static_stays(
            Territory(journey.ROOT, "rasplens.compare"), "rasplens.compare.pipeline", "compared", "learned"
        )
