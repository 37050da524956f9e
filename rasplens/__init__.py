"""RASPLens: compile RASP programs to known circuits and compare learned transformers against them.

The three acts are `rasplens.compile`, `rasplens.learned` and `rasplens.compare`; both sides of a
comparison are a `rasplens.model.Transformer`, and `rasplens.tasks` says what they are asked to do.
"""

from importlib.metadata import version

from rasplens.errors import RaspLensError

__version__ = version("rasplens")
__all__ = ["RaspLensError", "__version__"]
