"""Sphinx builds the site from these pages: python -m sphinx -W docs build/site."""

from pathlib import Path
from typing import Any

from rasplens import __version__

project = "RASPLens"
author = "the RASPLens authors"
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinxcontrib.mermaid",
]
exclude_patterns = ["build"]
html_theme = "furo"
html_title = f"RASPLens {__version__}"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
suppress_warnings = ["myst.header"]  # generated tables begin at a lower level
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True


def live_report(app: Any, error: Exception | None) -> None:
    """Writes the report on induction beside the pages; the first page links to it."""
    if error is not None or app.builder.name != "html":
        return
    from rasplens.compare import compare, write_report
    from rasplens.learned import load_pretrained
    from rasplens.tasks import get_task

    task = get_task("induction")
    write_report(compare("induction", load_pretrained("induction"), task=task), Path(app.outdir) / "report.html")


def setup(app: Any) -> None:
    """Connects what happens after the build."""
    app.connect("build-finished", live_report)
