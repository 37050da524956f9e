import numpy as np
import pytest

from rasplens.compare.discovery.methods.patching import exact_edges, random_edges
from rasplens.compare.discovery.problem import Protocol
from rasplens.compare.discovery.scoring import score_edges
from rasplens.errors import RaspLensError


@pytest.fixture(scope="module")
def asked(case):
    return case.problem(Protocol(n_pairs=16))


def labels(asked, case):
    return asked.graph.mask_of(case.varying)


def test_perfect_and_reversed_and_equal_scores(asked, case):
    own = labels(asked, case).astype(float)
    best, worst = (score_edges(asked, scores, case.varying, case.decoys) for scores in (own, 1 - own))
    assert (best.auroc, best.average_precision, best.decoys) == (1.0, 1.0, 1.0)
    assert (worst.auroc, worst.decoys) == (0.0, 0.0)
    assert score_edges(asked, np.zeros_like(own), case.varying).auroc == 0.5
    assert best.base_rate == own.mean()
    assert best.n_edges == len(own)


def test_absolute_scores_see_size_and_signed_ones_do_not(case):
    own = labels(case.problem(Protocol(n_pairs=4)), case)
    scores = np.where(own, -1.0, 0.1)
    assert score_edges(case.problem(Protocol(n_pairs=4)), scores, case.varying).auroc == 1.0
    signed = case.problem(Protocol(n_pairs=4, absolute=False))
    assert score_edges(signed, scores, case.varying).auroc == 0.0


def test_edges_without_a_score_come_last_or_are_left_out(case):
    last, out = (case.problem(Protocol(n_pairs=4, unscored=where)) for where in ("last", "out"))
    own = labels(last, case)
    scores = own.astype(float)
    scores[np.flatnonzero(own)[0]] = np.nan
    assert score_edges(last, scores, case.varying).auroc == pytest.approx(1 - 1 / own.sum())
    assert score_edges(out, scores, case.varying).auroc == 1.0
    assert score_edges(out, scores, case.varying).n_edges == len(own) - 1


def test_edges_from_embeddings_may_be_left_out(case):
    asked = case.problem(Protocol(n_pairs=4, embeddings=False))
    found = score_edges(asked, labels(asked, case).astype(float), case.varying)
    assert found.n_edges == (~asked.graph.from_embeddings).sum()


def test_the_best_circuit_is_more_faithful_than_a_random_one(asked, case):
    exact, random = (score_edges(asked, method(asked), case.varying) for method in (exact_edges, random_edges))
    assert exact.cpr > random.cpr
    assert exact.cmd < random.cmd
    assert exact.cpr + exact.cmd == pytest.approx(0.999, abs=0.01)  # faithfulness between 0 and 1 throughout


def test_scores_of_another_shape_are_refused(asked, case):
    with pytest.raises(RaspLensError, match="one score for each of the model's"):
        score_edges(asked, np.zeros(3), case.varying)
