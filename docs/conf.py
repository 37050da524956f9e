"""Sphinx builds the site from these pages: python -m sphinx -W docs build/site."""

from rasplens import __version__

project = "RASPLens"
author = "the RASPLens authors"
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinxcontrib.mermaid",
]
exclude_patterns = ["build"]
html_theme = "furo"
html_title = f"RASPLens {__version__}"

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
