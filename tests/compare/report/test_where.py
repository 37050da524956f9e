"""Where variables and heads were found: the claims' own status, score and place."""

from dataclasses import replace

from rasplens.compare.report.where import heads_found, score_text, variables_found
from rasplens.compare.verdict.claims import UNTESTABLE


def test_every_claim_on_variables_has_a_row_with_its_place(ceiling):
    claims = [claim for claim in ceiling.verdict.all_claims if claim.kind == "variables"]
    found = variables_found(ceiling)
    assert [one.status for one in found] == [claim.status for claim in claims]
    sites = ceiling.tables["interchange"].set_index("variable")
    assert len(sites) >= 1
    for one, claim in zip(found, claims, strict=True):
        assert one.what in claim.claim
        assert one.score == score_text(claim)
        if one.what in sites.index:
            site = sites.loc[one.what]
            assert one.where == f"{site['point']} ({site['method']}, rank {site['rank']:.0f})"
            assert f"IIA {site['iia']:.2f}" in one.evidence


def test_every_matched_head_has_a_row_with_the_claim_on_its_edges(ceiling):
    found = heads_found(ceiling)
    table = ceiling.tables["attention"]
    assert len(found) == len(table.groupby(["compiled_layer", "compiled_head"]))
    claims = {claim.claim: claim for claim in ceiling.verdict.all_claims}
    gathering = 0
    for one in found:
        claim = claims.get(f"{one.what.partition(', ')[2]} gathers along its selector's edges")
        gathering += claim is not None
        assert one.status == (UNTESTABLE if claim is None else claim.status)
        assert one.score in one.evidence
    assert gathering >= 1


def test_what_was_not_tested_has_no_score(ceiling):
    claim = replace(ceiling.verdict.all_claims[0], status=UNTESTABLE)
    assert score_text(claim) == "–"
    assert "control" in score_text(replace(claim, status="holds", control=0.25))
    assert "control" not in score_text(replace(claim, status="holds", control=float("nan")))
