"""The command line: `app` has what all commands share, `options` what they take; each calls one workflow."""

from rasplens.cli import comparing, compiling, training, methods, listing  # noqa: F401, I001  the order of the help
from rasplens.cli.entry import main

__all__ = ["main"]
