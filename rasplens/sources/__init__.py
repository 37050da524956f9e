"""Where the tasks, programs and models of a command come from: by name, or from files of a user's own."""

from rasplens.sources.models import Studied, check_names, learned_model
from rasplens.sources.programs import compile_source, program_source, reference
from rasplens.sources.tasks import task_source
from rasplens.sources.vocabularies import Sizes, parse_vocab

__all__ = [
    "Sizes",
    "Studied",
    "check_names",
    "compile_source",
    "learned_model",
    "parse_vocab",
    "program_source",
    "reference",
    "task_source",
]
