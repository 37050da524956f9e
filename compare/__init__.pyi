"""The names of the package, each imported from its module when it is first used."""

from .comparison import (
    Comparison,
)
from .config import (
    PRESETS,
    CompareConfig,
)
from .explaining.explain import (
    explain,
)
from .explaining.explanation import (
    Explanation,
)
from .pairing.distinguishing import (
    discriminate,
)
from .pipeline import (
    compare,
    rank,
)
from .ranking import (
    Ranking,
    comparison_table,
)
from .report.page import (
    write_report,
)
from .study import (
    Study,
    study_of,
)
from .subject.as_studied import (
    as_studied_model,
)
from .subject.studied_model import (
    StudiedModel,
)
from .subject.vocabulary import (
    Vocabulary,
    token_vocabulary,
    vocabulary_of,
)
from .verdict.verdict import (
    Verdict,
)

__all__ = [
    "PRESETS",
    "CompareConfig",
    "Comparison",
    "Explanation",
    "Ranking",
    "StudiedModel",
    "Study",
    "Verdict",
    "Vocabulary",
    "as_studied_model",
    "compare",
    "comparison_table",
    "discriminate",
    "explain",
    "rank",
    "study_of",
    "token_vocabulary",
    "vocabulary_of",
    "write_report",
]
