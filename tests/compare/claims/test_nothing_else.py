"""The claim that nothing else decides."""

import pytest
from circuit_sides import mixed, sides

from rasplens.compare import compare
from rasplens.compare.claims.claim import HOLDS, OPEN, Subject
from rasplens.compare.claims.nothing_else import NothingElse
from rasplens.compare.verdict.verdict import IMPLEMENTS, UNKNOWN


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "status", "answer"), [(0.999, OPEN, UNKNOWN), (0.9, OPEN, UNKNOWN), (0.05, HOLDS, IMPLEMENTS)]
)
def test_what_decides_beside_the_program_leaves_the_verdict_open(share, status, answer):
    """The highest by its rank; where no rank is the first, a faint copy of the reference answers."""
    task, directly, by_rank = sides("highest")
    model, vocabulary = mixed(task, directly, by_rank, (1 - share, share))
    found = compare(directly, model, task=task, config="quick", vocabulary=vocabulary).verdict
    (claim,) = (one for one in found.all_claims if isinstance(one.subject, NothingElse))
    assert claim.status == status
    assert found.answer == answer


def test_the_subject_names_the_heads():
    one = NothingElse(((0, 1), (2, 0)))
    assert str(one).startswith("L0H1+L2H0 ")
    assert Subject.from_dict(one.to_dict(), [NothingElse]) == one
