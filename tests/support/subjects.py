"""Subjects of claims, of each level."""

from rasplens.compare.claims.answers import AnswersOn
from rasplens.compare.claims.claim import Level, Subject
from rasplens.compare.claims.edges.questions import GatheredEdges
from rasplens.compare.claims.variables import OneVariable

MADE = {"answers": AnswersOn, "variables": OneVariable, "routes": lambda name: GatheredEdges((name,), ())}


def subject(level: Level, name: str = "c") -> Subject:
    """Something of a name that claims of a level are about."""
    return MADE[level](name)
