"""The site builds from the pages without a warning, and has every public name."""

import importlib
import re
import subprocess
import sys
from inspect import ismodule
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="sphinx is not installed")
pytest.importorskip("furo", reason="furo is not installed")

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def test_the_contents_name_every_page():
    pages = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in (ROOT / "docs").rglob("*.md")}
    index = (ROOT / "docs" / "index.md").read_text()
    named = {name for block in re.findall(r"```{toctree}(.*?)```", index, flags=re.S) for name in block.split()}
    assert pages - {"index"} <= named


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_has_every_public_name(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", tmp_path / "doctrees"]
    command += [ROOT / "docs", tmp_path / "site"]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    names, missing = 0, []
    for page in REFERENCE.glob("*.md"):
        text = (tmp_path / "site" / "reference" / f"{page.stem}.html").read_text()
        for module in re.findall(r"automodule:: (\S+)", page.read_text()):
            found = importlib.import_module(module)
            public = [name for name in getattr(found, "__all__", ()) if not ismodule(getattr(found, name))]
            names += len(public)
            missing += [f"{module}.{name}" for name in public if f'id="{module}.{name}"' not in text]
    assert (tmp_path / "site" / "report.html").stat().st_size > 100_000  # the first page links to it
    assert names > 100
    assert not missing
