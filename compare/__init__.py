"""A learned model held against a compiled one: evidence along three axes, each beside its control."""

from rasplens.compare.comparison import Comparison
from rasplens.compare.pairing import Pairing, as_subject, pair
from rasplens.compare.pipeline import compare
from rasplens.compare.subject import Subject

__all__ = ["Comparison", "Pairing", "Subject", "as_subject", "compare", "pair"]
