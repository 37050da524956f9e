import numpy as np
import pytest

from rasplens.compare.discovery.methods.controls import random_edges
from rasplens.compare.discovery.methods.patching import exact_edges
from rasplens.compare.discovery.protocol import Protocol, Scoring
from rasplens.compare.discovery.scoring import _places_in_random_orders, score_edges
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


def test_an_area_has_an_interval_over_edges(asked, case):
    own, noise = labels(asked, case), np.random.default_rng(0).random(len(labels(asked, case)))
    perfect, random, better = (
        score_edges(asked, scores, case.varying) for scores in (own.astype(float), noise, noise + 0.3 * own)
    )
    assert (perfect.auroc_low, perfect.auroc_high) == (perfect.average_precision_low, 1.0) == (1.0, 1.0)
    assert 0 < random.auroc_low < random.auroc < random.auroc_high < 1
    assert 0 < better.average_precision_low < better.average_precision < better.average_precision_high < 1
    assert random.auroc_low < 0.5 < random.auroc_high
    assert better.auroc_low > random.auroc_low
    one = score_edges(asked, noise, sorted(case.varying)[:1])
    assert 0 <= one.auroc <= 1
    assert np.isnan([one.auroc_low, one.average_precision_high]).all()


def test_scores_below_the_floor_are_zero_and_tie(asked, case):
    """Rounding that knows the circuit: far below the one score that is large."""
    own = labels(asked, case)
    scores = np.where(own, 2e-9, 1e-9)
    scores[np.flatnonzero(own)[0]] = 1.0
    usual = case.problem(Protocol(n_pairs=4))
    assert score_edges(usual, scores, case.varying, scoring=Scoring(floor=0.0)).auroc == 1.0
    first = 1 / own.sum()
    assert score_edges(usual, scores, case.varying).auroc == pytest.approx(first + (1 - first) / 2)
    assert score_edges(usual, scores * 1e-12, case.varying).auroc == pytest.approx(first + (1 - first) / 2)
    assert score_edges(usual, np.where(own, 2e-6, 1e-6), case.varying).auroc == 1.0  # all are as small
    signed = case.problem(Protocol(n_pairs=4, absolute=False))
    scores[~own] = -1e-9
    assert score_edges(signed, scores, case.varying).auroc == pytest.approx(first + (1 - first) / 2)
    scores[~own] = -1e-3
    assert score_edges(signed, scores, case.varying).auroc == 1.0


def test_the_order_of_edges_that_tie_favours_no_circuit(asked, case):
    """Once, the first edges of the model were taken first: those from the embeddings."""
    own = labels(asked, case)
    n, last = len(own), np.flatnonzero(own)[-1]
    orders = _places_in_random_orders(np.where(np.arange(n) == last, 1.0, 0.0), 0)
    assert (np.sort(orders, axis=1) == np.arange(n)).all()
    assert (orders[:, last] == 0).all()
    assert orders[:, 0].std() > 0
    equal = score_edges(asked, np.zeros(n), case.varying)
    exact = score_edges(asked, exact_edges(asked), case.varying)
    assert equal.cpr < 0.8 * exact.cpr
    again = score_edges(asked, np.zeros(n), case.varying)
    assert (again.cpr, again.cmd) == (equal.cpr, equal.cmd)
    assert equal.average_precision == pytest.approx(equal.base_rate)


def test_edges_of_which_nothing_is_known_are_not_scored(asked, case):
    own = labels(asked, case)
    unknown = [asked.graph.edges[i] for i in (np.flatnonzero(own)[0], np.flatnonzero(~own)[0])]
    scores = own.astype(float)
    scores[asked.graph.mask_of(unknown)] = 0.5
    found = score_edges(asked, scores, case.varying, unknown=unknown)
    assert (found.auroc, found.n_edges) == (1.0, len(own) - 2)
    assert found.base_rate == pytest.approx((own.sum() - 1) / (len(own) - 2))
    with pytest.raises(RaspLensError, match=r"No edge.*scored"):
        score_edges(asked, scores, case.varying, unknown=asked.graph.edges)


def test_absolute_scores_see_size_and_signed_ones_do_not(case):
    own = labels(case.problem(Protocol(n_pairs=4)), case)
    scores = np.where(own, -1.0, 0.1)
    assert score_edges(case.problem(Protocol(n_pairs=4)), scores, case.varying).auroc == 1.0
    signed = case.problem(Protocol(n_pairs=4, absolute=False))
    assert score_edges(signed, scores, case.varying).auroc == 0.0


def test_edges_without_a_score_come_last_or_are_left_out(case):
    asked = case.problem(Protocol(n_pairs=4))
    own = labels(asked, case)
    scores = own.astype(float)
    scores[np.flatnonzero(own)[0]] = np.nan
    last, out = (
        score_edges(asked, scores, case.varying, scoring=Scoring(unscored=where)) for where in ("last", "out")
    )
    assert last.auroc == pytest.approx(1 - 1 / own.sum())
    assert (out.auroc, out.n_edges, out.n_unscored) == (1.0, len(own) - 1, 1)
    assert last.n_unscored == 1
    assert score_edges(asked, own.astype(float), case.varying).n_unscored == 0


def test_edges_from_embeddings_may_be_left_out(case):
    asked, scoring = case.problem(Protocol(n_pairs=4)), Scoring(embeddings="out")
    found = score_edges(asked, labels(asked, case).astype(float), case.varying, scoring=scoring)
    assert found.n_edges == (~asked.graph.from_embeddings).sum()


def test_tokens_and_positions_may_be_one_sender_of_which_the_logits_do_not_count(case):
    asked, scoring = case.problem(Protocol(n_pairs=4)), Scoring(embeddings="one")
    graph, own = asked.graph, labels(asked, case)
    ends = {edge.replace("pos_embed", "embed") for edge in graph.edges} - {"embed->logits"}
    found = score_edges(asked, own.astype(float), case.varying, scoring=scoring)
    assert (found.n_edges, found.auroc) == (len(ends), 1.0)
    in_circuit = {edge.replace("pos_embed", "embed") for edge in case.varying} - {"embed->logits"}
    assert found.base_rate == pytest.approx(len(in_circuit) / len(ends))


def test_an_edge_without_a_score_is_part_of_the_one_that_it_is_merged_into(case):
    """A merged edge is in the circuit if any part is, also if that one has no score."""
    asked, scoring = case.problem(Protocol(n_pairs=4)), Scoring(heads="whole", unscored="out")
    graph, own = asked.graph, labels(asked, case)
    merged, scores = graph.merged(heads=True, embeddings=False), own.astype(float)
    several = [one for one in np.unique(merged[own]) if (merged == one).sum() > 1]
    for one in several:
        scores[np.flatnonzero((merged == one) & own)[0]] = np.nan
    assert len(several) > 0
    found, whole = (
        score_edges(asked, values, case.varying, scoring=scoring) for values in (scores, own.astype(float))
    )
    assert (found.n_edges, found.base_rate) == (whole.n_edges, whole.base_rate)


def test_edges_into_the_logits_may_be_left_out(case):
    asked, scoring = case.problem(Protocol(n_pairs=4)), Scoring(logits=False)
    found = score_edges(asked, labels(asked, case).astype(float), case.varying, scoring=scoring)
    assert found.n_edges == sum(not edge.endswith("->logits") for edge in asked.graph.edges)


def test_the_three_readings_of_a_head_may_count_as_one_edge_with_the_largest_score(case):
    asked, scoring = case.problem(Protocol(n_pairs=4)), Scoring(heads="whole")
    graph = asked.graph
    ends = {tuple(edge.partition(".")[0].split("->")) for edge in graph.edges}
    own = labels(asked, case)
    of_circuit = {tuple(edge.partition(".")[0].split("->")) for edge in case.varying}
    found = score_edges(asked, own.astype(float), case.varying, scoring=scoring)
    assert (found.n_edges, found.auroc) == (len(ends), 1.0)
    assert found.base_rate == pytest.approx(len(of_circuit) / len(ends))
    # One reading that is in the circuit has a score, the others have lower ones, and do not count.
    assert len(of_circuit) < own.sum() < len(own)
    one_each = {graph.merged(heads=True, embeddings=False)[i]: i for i in np.flatnonzero(own)}
    scores = np.full(len(own), -1.0)
    scores[list(one_each.values())] = 2.0
    assert score_edges(asked, scores, case.varying, scoring=scoring).auroc == 1.0


def test_stairs_have_a_step_at_each_fixed_threshold(case):
    asked = case.problem(Protocol(n_pairs=4, absolute=False))
    own = labels(asked, case)

    def areas(scores):
        curves = Scoring(), Scoring(curve="stairs")
        return [score_edges(asked, scores, case.varying, scoring=one).auroc for one in curves]

    assert areas(own.astype(float)) == [1.0, 1.0]
    # Scores whose sign is a coin's: half of the circuit lies below zero, and is never reached.
    signs = np.empty(len(own))
    for part in (own, ~own):
        signs[part] = np.resize([1.0, -1.0], part.sum())
    true, false = (signs[part] > 0 for part in (own, ~own))
    assert areas(signs) == [pytest.approx(0.5, abs=0.1), pytest.approx(true.mean() * (1 - false.mean()))]
    # Scores that know everything, but lie between two thresholds: one step, at which everything is in the circuit.
    assert areas(1e-7 * (1 + own)) == [1.0, 0.0]


def test_the_best_circuit_is_more_faithful_than_a_random_one(asked, case):
    exact, random = (score_edges(asked, method(asked), case.varying) for method in (exact_edges, random_edges))
    assert exact.cpr > random.cpr
    assert exact.cmd < random.cmd
    assert exact.cpr + exact.cmd == pytest.approx(0.999, abs=0.01)  # faithfulness between 0 and 1 throughout


def test_scores_of_another_shape_are_refused(asked, case):
    with pytest.raises(RaspLensError, match=rf"{len(asked.graph.edges)} edges.*\(3,\)"):
        score_edges(asked, np.zeros(3), case.varying)
