"""A learned model held against compiled ones: a program's claims, tested by intervention, and a verdict."""

from rasplens.compare.comparison import Comparison
from rasplens.compare.config import PRESETS, CompareConfig
from rasplens.compare.evidence.behaviour import discriminate
from rasplens.compare.models.pairing import pair
from rasplens.compare.models.studied_model import StudiedModel, as_studied_model
from rasplens.compare.models.vocabulary import Vocabulary, token_vocabulary, vocabulary_of
from rasplens.compare.pipeline import compare, rank
from rasplens.compare.ranking import Ranking, comparison_table
from rasplens.compare.report.page import write_report
from rasplens.compare.verdict.calibration.measure import calibrate
from rasplens.compare.verdict.verdict import Verdict

__all__ = [
    "PRESETS",
    "CompareConfig",
    "Comparison",
    "Ranking",
    "StudiedModel",
    "Verdict",
    "Vocabulary",
    "as_studied_model",
    "calibrate",
    "compare",
    "comparison_table",
    "discriminate",
    "pair",
    "rank",
    "token_vocabulary",
    "vocabulary_of",
    "write_report",
]
