"""What a wheel holds: a package that is installed without its checkout has to find everything that it reads."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
FOLDERS = {ROOT / folder: package for package, folder in SETUP["package-dir"].items()}


def package_of(path):
    """The innermost declared package that a file of the checkout belongs to."""
    for folder, package in FOLDERS.items():
        if path.is_relative_to(folder):
            inside = [package, *path.relative_to(folder).parts[:-1]]
            while ".".join(inside) not in SETUP["packages"]:
                inside.pop()
            return ".".join(inside), path.relative_to(folder.joinpath(*inside[1:]))
    raise AssertionError(f"{path} is in no package")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_file_beside_the_code_is_package_data(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    for path in files:
        package, name = package_of(path)
        patterns = SETUP["package-data"].get(package, [])
        if path.suffix == ".py":
            assert len(name.parts) == 1, f"{path} is in no declared package"
        else:
            # A pattern is matched from the right; in a wheel it is from the package's own folder.
            same = [one for one in patterns if len(Path(one).parts) == len(name.parts) and name.match(one)]
            assert same, f"{path} would be missing from a wheel"


def test_the_mapping_of_the_verdict_is_among_them():
    assert "verdict.json" in SETUP["package-data"]["rasplens.compare"]  # it was not: every comparison failed
