"""The claim that nothing else decides."""

import numpy as np
import pytest
from circuit_sides import mixed, sides
from known_trials import known_trials

from rasplens.compare import compare
from rasplens.compare.claims.claim import Subject
from rasplens.compare.claims.edges.unmapped_heads import UnmappedHeads
from rasplens.compare.claims.kind import Evidence
from rasplens.compare.claims.nothing_else import NOTHING_ELSE, NothingElse, judged
from rasplens.compare.claims.trials.judging import HOLDS, OPEN, UNTESTABLE
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


@pytest.mark.parametrize(
    ("right", "status"), [([True] * 100, HOLDS), ([False] * 100, OPEN), ([True] * 3, UNTESTABLE)]
)
def test_what_heads_decide_otherwise_never_refutes(right, status):
    claim = judged(UnmappedHeads([(0, 1)], known_trials(right), 0.2, lambda _: known_trials(right)), 1)
    assert claim.status == status
    assert claim.subject == NothingElse(((0, 1),))


@pytest.mark.usefixtures("unchecked")
def test_without_an_unmapped_head_there_is_no_claim():
    evidence = Evidence({"unmapped heads": None})
    assert list(NOTHING_ELSE.claims(None, evidence, np.random.default_rng(0))) == []


def test_the_subject_names_the_heads():
    one = NothingElse(((0, 1), (2, 0)))
    assert "(L0H1+L2H0)" in str(one)
    assert Subject.from_dict(one.to_dict(), [NothingElse]) == one
