"""Where a variable is interchanged."""

import numpy as np
import pytest

from lab.labelled.circuits import CIRCUITS
from rasplens.compare import CompareConfig, study_of
from rasplens.compare.claims.interchange.pairs import interchange_pairs
from rasplens.compare.claims.interchange.patching import NO_WORSE, Site, agreement, rescored, smallest
from rasplens.compare.claims.interchange.sites import (
    FEW_PAIRS,
    MOST_RESCORED,
    _promising,
    _spread,
    components,
    find_sites,
    mapped_subspaces,
    when,
)
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.subject.vocabulary import vocabulary_of
from rasplens.compile import compile_program
from rasplens.model import disguise

POINT = "blocks.0.hook_resid_post"


@pytest.fixture(scope="module")
def found(with_itself):
    return representations(with_itself)


@pytest.fixture(scope="module")
def chosen(with_itself):
    positions = with_itself.interchangeable_positions("previous")
    return interchange_pairs(with_itself.fitting, "previous", positions, seed=0)


def test_the_best_site_is_where_the_score_is_highest(with_itself, found, chosen):
    """The first layer has one head, which gathers the letter before and nothing else: it is taken as a whole."""
    studied = with_itself.fitting.learned
    site = find_sites(studied, chosen, found, 0, das_steps=0).best
    assert (site.point, site.method) == ("blocks.0.hook_attn_out", "component")
    assert site.score == agreement(studied, chosen, site.point, site.subspaces).score == 1
    assert list(site.subspaces) == chosen.positions
    scores = {
        point: agreement(studied, chosen, point, mapped_subspaces(studied, found, "previous", point)).score
        for point in studied.residual_points
    }
    assert max(scores.values()) <= site.score
    assert max(scores, key=scores.get) in ("blocks.0.hook_resid_mid", POINT)


def test_a_variable_whose_component_does_more_is_found_by_the_linear_map():
    """In any basis: what a head gathers at the first position is the token itself, which must stay."""
    circuit = CIRCUITS["same_as_first"]
    task, program = circuit.task(), circuit.program()
    compiled = compile_program(program, task.vocab, task.n_ctx, mask=task.visible)
    twin = disguise(compiled.transformer, seed=1, basis="oblique", extra_width=3)
    for model, vocabulary in ((compiled, None), (twin, vocabulary_of(compiled, task))):
        study = study_of(compiled, model, task, CompareConfig(n_inputs=100, n_fitting=400), 0, vocabulary)
        positions = study.interchangeable_positions("first_token")
        pairs = interchange_pairs(study.fitting, "first_token", positions, seed=0)
        site = find_sites(study.fitting.learned, pairs, representations(study), 0, das_steps=0).best
        assert (site.method, site.score) == ("linear map", 1)


def test_the_smallest_of_equally_good_subspaces_is_taken(with_itself, found, chosen):
    studied = with_itself.fitting.learned
    subspaces = mapped_subspaces(studied, found, "previous", POINT)
    largest = Site(POINT, "linear map", subspaces, agreement(studied, chosen, POINT, subspaces).score, 0.0)
    found_one = smallest(largest, lambda site: rescored(studied, chosen, site))
    (rank,) = {one.rank for one in found_one.subspaces.values()}
    assert rank <= min(one.rank for one in largest.subspaces.values())
    assert found_one.score >= largest.score - NO_WORSE
    fewer = {position: one.first(rank - 1) for position, one in subspaces.items()}
    assert agreement(studied, chosen, POINT, fewer).score < largest.score - NO_WORSE
    # Eight letters, and none before the first: seven directions tell them apart.
    assert rank == 7


def test_what_the_map_finds_goes_with_an_oblique_basis(with_itself, induction, task, chosen, found):
    """The same parts of the same activations, so the same answers, in any disguise."""
    twin = disguise(induction.transformer, seed=1, basis="oblique", extra_width=3)
    study = study_of(induction, twin, task, with_itself.config, 0, vocabulary_of(induction, task))
    np.testing.assert_array_equal(study.fitting.ids, with_itself.fitting.ids)
    results = []
    for one, held in ((with_itself, found), (study, representations(study))):
        studied = one.fitting.learned
        subspaces = mapped_subspaces(studied, held, "previous", POINT)
        results.append(agreement(studied, chosen, POINT, subspaces).right)
    assert (results[0] == results[1]).mean() > 0.999
    assert results[0].mean() > 0.9


def test_components_are_heads_and_what_layers_write(with_itself):
    studied = with_itself.fitting.learned
    parts = list(components(studied, [2, 3]))
    assert [point for point, *_ in parts if point.endswith("hook_z")] == [
        f"blocks.{layer}.attn.hook_z" for layer, _ in studied.heads
    ]
    assert {"blocks.0.hook_attn_out", "blocks.1.hook_attn_out"} <= {point for point, *_ in parts}
    d_head = studied.model.cfg.d_head
    for point, method, subspaces in parts:
        assert (method, list(subspaces)) == ("component", [2, 3])
        assert subspaces[2].rank == (d_head if point.endswith("hook_z") else studied.model.cfg.d_model)


def test_no_site_wins_by_few_pairs(with_itself, found, chosen, monkeypatch):
    """All do better on few pairs than on all of them, and only three are scored on all."""
    few = len(chosen.of(slice(FEW_PAIRS)).base)
    assert few < len(chosen.base)

    def scored(studied, pairs, point, method, subspaces):
        score = 1.0 if len(pairs.base) <= few else 0.7
        return Site(point, method, dict(subspaces), score, score)

    monkeypatch.setattr("rasplens.compare.claims.interchange.sites.MOST_RESCORED", 3)
    for module in ("sites", "patching"):
        monkeypatch.setattr(f"rasplens.compare.claims.interchange.{module}.scored", scored)
    as_it_is = lambda studied, pairs, site, axes, moved: site  # noqa: E731
    monkeypatch.setattr("rasplens.compare.claims.interchange.sites.by_its_active_part", as_it_is)
    sites = find_sites(with_itself.fitting.learned, chosen, found, 0, das_steps=0)
    assert {sites.best.score, *(site.score for site in sites.good)} == {0.7}
    assert len(sites.good) == 3


def test_nothing_is_found_in_a_model_that_learned_nothing(with_noise, chosen):
    """The pairs of the model that does answer: on its own there are none."""
    site = find_sites(with_noise.fitting.learned, chosen, representations(with_noise), 0, das_steps=10).best
    assert site.score <= 0.2


def test_equally_good_sites_come_from_the_last_in_the_forward_pass_to_the_first(with_itself, found, chosen):
    """Behind the second layer's attention nothing reads the letter before any longer."""
    studied = with_itself.fitting.learned
    sites = find_sites(studied, chosen, found, 0, das_steps=0)
    assert sites.best.point == "blocks.0.hook_attn_out"
    latest = sites.good[0]
    assert [when(site.point) for site in sites.good] == sorted(
        (when(site.point) for site in sites.good), reverse=True
    )
    assert {latest.point, sites.best.point} < {site.point for site in sites.good}
    assert min(site.score for site in sites.good) >= sites.best.score - NO_WORSE
    behind = (point for point in studied.residual_points if when(point) > when(latest.point))
    for point in behind:
        subspaces = mapped_subspaces(studied, found, "previous", point)
        assert agreement(studied, chosen, point, subspaces).score < sites.best.score - NO_WORSE


def test_of_many_good_sites_some_are_kept_from_all_over_the_forward_pass():
    sites = [Site(f"blocks.{layer}.hook_resid_post", "component", {}, 1.0, 1.0) for layer in range(11)]
    assert [site.point.split(".")[1] for site in _spread(sites)] == ["0", "2", "5", "8", "10"]
    assert _spread(sites[:3]) == tuple(sites[:3])


def test_hook_points_are_in_forward_order():
    points = (
        "blocks.1.attn.hook_z", "blocks.10.hook_attn_out", "blocks.0.hook_resid_post", "blocks.0.attn.hook_z",
        "blocks.0.hook_mlp_out", "blocks.0.hook_resid_pre",
    )  # fmt: skip
    assert sorted(points, key=when) == [points[i] for i in (5, 3, 4, 2, 0, 1)]


def test_sites_that_do_clearly_worse_than_the_best_are_not_looked_at_again():
    scores = [0.0, 0.9, 0.7, 0.5, 0.95, 0.0]
    sites = [Site(POINT, "component", {}, score, score) for score in scores]
    assert sorted(site.score for site in _promising(sites)) == [0.7, 0.9, 0.95]
    assert _promising(sites[:1] * 3) == []  # one that never works is clearly worse than any
    many = [Site(POINT, "component", {}, 0.01, 0.01)] * (2 * MOST_RESCORED)
    assert len(_promising(many)) == MOST_RESCORED
