"""Weighted programs: real-valued scores, mixtures of values, and votes, where a selector would be too hard."""

from rasplens.compile.weighted.evaluation import Inputs, Patch, answers, inputs_of, votes
from rasplens.compile.weighted.language import Mix, Vote, Votes, Weigh, numbers_of, with_numbers
from rasplens.compile.weighted.storage import load_numbers, save_numbers
from rasplens.compile.weighted.tables import (
    Constant,
    Difference,
    Each,
    Keys,
    Number,
    Of,
    Only,
    Pairs,
    Polynomial,
    Queries,
    Rest,
    Times,
    When,
)
from rasplens.compile.weighted.text import weighted_text
from rasplens.compile.weighted.weights import as_transformer

__all__ = [
    "Constant",
    "Difference",
    "Each",
    "Inputs",
    "Keys",
    "Mix",
    "Number",
    "Of",
    "Only",
    "Pairs",
    "Patch",
    "Polynomial",
    "Queries",
    "Rest",
    "Times",
    "Vote",
    "Votes",
    "Weigh",
    "When",
    "answers",
    "as_transformer",
    "inputs_of",
    "load_numbers",
    "numbers_of",
    "save_numbers",
    "votes",
    "weighted_text",
    "with_numbers",
]
