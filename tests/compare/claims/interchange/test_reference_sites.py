"""What the search finds in the compiled model itself."""

import pytest

from lab.labelled.random_programs import random_program
from rasplens.compare import study_of
from rasplens.compare.claims.interchange.pairs import draw_pairs
from rasplens.compare.claims.interchange.patching import agreement
from rasplens.compare.claims.interchange.reference_sites import ReferenceSites
from rasplens.compare.claims.interchange.sites import GOOD_ENOUGH, find_sites
from rasplens.compare.config import PRESETS
from rasplens.compile import compile_program


def test_each_variable_is_sought_once_and_on_few_pairs(with_itself, monkeypatch):
    ((chosen, _),) = draw_pairs(with_itself, with_itself.variables, 0)
    asked = []

    def counted(studied, pairs, *given):
        asked.append(len(pairs.base))
        return find_sites(studied, pairs, *given)

    monkeypatch.setattr("rasplens.compare.claims.interchange.reference_sites.find_sites", counted)
    sites = ReferenceSites(with_itself, 0)
    assert sites.sites(chosen) is sites.sites(chosen)
    assert asked == [with_itself.config.control_pairs]
    assert len(chosen.base) > asked[0]


@pytest.mark.slow
def test_what_the_search_does_not_find_there_is_a_low_ceiling():
    """A variable of a random program, of which the compiled model keeps two copies."""
    one = random_program(1)
    task = one.task()
    compiled = compile_program(one.program, task.vocab, task.n_ctx, mask=task.visible)
    study = study_of(compiled, compiled, task, PRESETS["quick"], 0)
    chosen = {pairs.variable: pairs for pairs, _ in draw_pairs(study, study.variables, 0)}["where_3"]
    sites = ReferenceSites(study, 0)
    best, few = sites.sites(chosen).best, chosen.of(slice(study.config.control_pairs))
    assert sites.ceiling(chosen) == best.score < 0.9
    again = agreement(study.fitting.reference, few, best.point, best.subspaces).score
    assert again == pytest.approx(best.score)


def test_where_a_component_is_good_enough_nothing_is_sought(with_itself, monkeypatch):
    ((chosen, _),) = draw_pairs(with_itself, with_itself.variables, 0)
    monkeypatch.setattr(ReferenceSites, "sites", None)
    assert ReferenceSites(with_itself, 0).ceiling(chosen) >= GOOD_ENOUGH
