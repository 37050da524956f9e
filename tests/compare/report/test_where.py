"""Where variables and heads were found: the claims' own status, score and place."""

from dataclasses import replace

import pytest

from rasplens.compare import CompareConfig, compare
from rasplens.compare.claims.claim import Claim
from rasplens.compare.claims.edges.questions import GatheredEdges
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, UNTESTABLE
from rasplens.compare.report.attention_view import best_matches
from rasplens.compare.report.where import heads_found, score_text, variables_found
from rasplens.compile.rasp import Aggregate, Select, SequenceMap, indices, tokens
from rasplens.tasks import compile_for, task_from_program

FEW = CompareConfig(n_inputs=81, n_fitting=60, relevance_inputs=24, questions=40, questions_tried=400, das_steps=0)


def test_every_claim_on_variables_has_a_row_with_its_place(ceiling):
    claims = [claim for claim in ceiling.verdict.all_claims if claim.level == "variables"]
    found = variables_found(ceiling)
    assert [one.status for one in found] == [claim.status for claim in claims]
    sites = ceiling.tables["interchange"].set_index("variable")
    assert len(sites) >= 1
    for one, claim in zip(found, claims, strict=True):
        assert one.what == " and ".join(claim.subject.names)
        assert one.score == score_text(claim)
        if one.what in sites.index:
            site = sites.loc[one.what]
            assert one.where == f"{site['point']} ({site['method']}, rank {site['rank']:.0f})"
            assert f"IIA {site['iia']:.2f}" in one.evidence


def test_every_matched_head_has_a_row_with_the_claim_on_its_edges(ceiling):
    found = heads_found(ceiling)
    table = ceiling.tables["attention"]
    assert len(found) == len(table.groupby(["compiled_layer", "compiled_head"]))
    gathering = 0
    for one, head in zip(found, best_matches(ceiling), strict=True):
        claims = [
            claim
            for claim in ceiling.verdict.all_claims
            if isinstance(claim.subject, GatheredEdges) and head in claim.subject.heads
        ]
        gathering += bool(claims)
        for claim in claims:
            assert claim.words in one.evidence
        assert one.score in one.evidence
    assert gathering >= 1


def test_what_was_not_tested_has_no_score(ceiling):
    claim = replace(ceiling.verdict.all_claims[0], status=UNTESTABLE)
    assert score_text(claim) == "–"
    assert "control" in score_text(replace(claim, status="holds", control=0.25))
    assert "control" not in score_text(replace(claim, status="holds", control=float("nan")))


@pytest.mark.slow
def test_aggregates_that_share_a_head_are_found_with_the_claim_on_their_edges():
    """The head is named by one variable, the claim by both aggregates: neither is found by its words."""
    first = Select(indices, indices, lambda key, query: key == 0)
    token, place = Aggregate(first, tokens).named("token"), Aggregate(first, tokens * 2).named("place")
    program = SequenceMap(lambda a, b: a + b, token, place).named("both")
    task = task_from_program(program, [0, 1, 2], 4)
    comparison = compare(program, compile_for(task), task=task, config=FEW)
    shared = [one.subject for one in comparison.verdict.all_claims if isinstance(one.subject, GatheredEdges)]
    assert [one.aggregates for one in shared] == [("token", "place")]
    assert shared[0].heads
    for one in heads_found(comparison):
        assert one.status == HOLDS
        assert str(shared[0]) in one.evidence


def test_of_several_claims_about_a_head_the_worst_counts(ceiling):
    (first, *_), heads = heads_found(ceiling), list(best_matches(ceiling))
    assert first.status == HOLDS
    fails = Claim(GatheredEdges(("another",), (heads[0],)), FAILS, 0.1, 0.0, 0.2, 0.0, 50, True, "by hand")
    more = replace(ceiling.verdict, all_claims=(*ceiling.verdict.all_claims, fails))
    worst, *_ = heads_found(replace(ceiling, verdict=more))
    assert worst.status == FAILS
