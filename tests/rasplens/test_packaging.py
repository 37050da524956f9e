"""What a wheel holds: a package that is installed without its checkout has to find everything that it reads."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ACTS = ("compile", "learned", "compare", "model", "tasks")
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
DATA = {
    path
    for package, patterns in SETUP["package-data"].items()
    for pattern in patterns
    for path in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
}


def files(folder, keep):
    found = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return [path for path in found if keep(path)]


@pytest.mark.parametrize("act", ACTS)
def test_the_package_links_to_every_act(act):
    link = ROOT / "rasplens" / act
    assert link.is_symlink()
    assert link.resolve() == ROOT / act


@pytest.mark.parametrize("act", ACTS)
def test_every_folder_with_code_is_a_package(act):
    for path in files(act, lambda path: path.suffix == ".py"):
        assert (path.parent / "__init__.py").is_file(), f"{path} would be missing from a wheel"


@pytest.mark.parametrize("act", ACTS)
def test_every_file_beside_the_code_is_package_data(act):
    for path in files(act, lambda path: path.suffix != ".py"):
        assert path in DATA, f"{path} would be missing from a wheel"
