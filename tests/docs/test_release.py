"""What a release has to agree on."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_citation_has_the_version_of_the_package():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE).group(1) == version


def test_the_forge_runs_what_ci_runs():
    assert "run: .ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
