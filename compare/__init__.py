"""A learned model held against compiled ones: five axes of evidence, each beside its controls, and a verdict."""

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.behaviour import discriminate
from rasplens.compare.models.pairing import Pairing, pair
from rasplens.compare.models.studied_model import Subject, as_subject
from rasplens.compare.models.vocabulary import Interface, token_interface
from rasplens.compare.pipeline import compare
from rasplens.compare.ranking import Ranking, comparison_table, replicates
from rasplens.compare.verdict.calibration.fit import calibrate
from rasplens.compare.verdict.verdict import Verdict

__all__ = [
    "Comparison",
    "Interface",
    "Pairing",
    "Ranking",
    "Subject",
    "Verdict",
    "as_subject",
    "calibrate",
    "compare",
    "comparison_table",
    "discriminate",
    "pair",
    "replicates",
    "token_interface",
]
