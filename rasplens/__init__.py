"""RASPLens: compile RASP programs to known circuits and compare learned transformers against them.

The three acts are `rasplens.compile`, `rasplens.learned` and `rasplens.compare`; both sides of a
comparison are a `rasplens.model.Transformer`, and `rasplens.tasks` says what they are asked to do.
"""

from importlib.metadata import version

__version__ = version("rasplens")
__all__ = ["__version__"]
