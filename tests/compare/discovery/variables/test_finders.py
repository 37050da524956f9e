"""Methods that look for variables, where the answer is known."""

import numpy as np
import pytest

from rasplens.compare.claims.interchange.patching import agreement
from rasplens.compare.config import CompareConfig
from rasplens.compare.discovery.cases import compiled_case, disguised_case
from rasplens.compare.discovery.variables.boundless_das import boundless_alignment_search
from rasplens.compare.discovery.variables.finders import FINDERS, Found
from rasplens.compare.discovery.variables.problem import variable_problems
from rasplens.compare.discovery.variables.scoring import VariableScore, score_variable, variable_board
from rasplens.compile import programs
from rasplens.compile.rasp import SequenceMap, tokens
from rasplens.model.interventions import whole
from rasplens.tasks import compile_for, task_from_program

SMALL = CompareConfig(n_inputs=200, n_fitting=300, interchange_pairs=60, pairs_tried=600, das_steps=10)
USED, UNUSED = "blocks.0.hook_resid_post", "blocks.1.hook_resid_post"


@pytest.fixture(scope="module")
def previous(case):
    (found,) = variable_problems(case, SMALL)
    return found


@pytest.fixture(scope="module")
def smooth():
    """A variable that an MLP reads: gradients reach it."""
    pairs = SequenceMap(lambda count, token: f"{count} {token}", programs.histogram(), tokens).named("pairs")
    task = task_from_program(pairs, "abc", 4)
    (found,) = variable_problems(disguised_case(compile_for(task), task), SMALL)
    return found


def test_a_probe_is_as_sure_where_nothing_reads_the_variable_any_more(previous):
    found = {site: FINDERS["probe"](previous, site) for site in previous.sites}
    assert found[USED].evidence == pytest.approx(found[UNUSED].evidence)
    assert found[USED].evidence > 0.3
    score = score_variable(previous, found)
    assert score.sites == 0.5
    assert score.used == 1.0  # where it is used, what it reads is the variable
    assert score.interchange <= 0.6  # in half of the sites that it is surest of, nothing happens


@pytest.mark.parametrize("method", ["linear-map", "das", "full-stream"])
def test_interventions_are_surer_where_the_variable_is_used(previous, method):
    found = {site: FINDERS[method](previous, site) for site in previous.sites}
    assert found[USED].evidence > found[UNUSED].evidence
    assert score_variable(previous, found).sites == 1.0


def test_controls_do_worse_than_what_is_known_to_hold_the_variable(previous):
    scores = {
        name: score_variable(previous, {site: FINDERS[name](previous, site) for site in previous.sites})
        for name in ("linear-map", "full-stream", "random")
    }
    assert scores["linear-map"].interchange > 0.95
    assert max(scores["full-stream"].interchange, scores["random"].interchange) < 0.8


@pytest.mark.slow
def test_boundless_search_finds_a_variable_in_a_disguise_and_how_few_directions_it_needs(smooth):
    site = next(site for site, use in smooth.sites.items() if use == "used")
    studied = smooth.fitting.learned
    found = boundless_alignment_search(studied, smooth.chosen, site, seed=0)
    assert agreement(smooth.study.learned, smooth.scored, site, found).score > 0.95
    assert np.mean([one.rank for one in found.values()]) <= 3  # four values
    untouched = boundless_alignment_search(studied, smooth.chosen, site, seed=0, steps=1)
    assert agreement(smooth.study.learned, smooth.scored, site, untouched).score < 0.9


def test_the_search_with_a_rank_finds_it_too_and_at_random_nothing_does(smooth):
    found = {
        name: score_variable(smooth, {site: FINDERS[name](smooth, site) for site in smooth.sites})
        for name in ("das", "random")
    }
    assert found["das"].interchange > 0.95
    assert found["random"].interchange < 0.6


def test_scores_of_what_ties_is_the_mean_and_the_rank_that_of_the_surest(previous):
    width = previous.study.learned.width(USED)
    everything = dict.fromkeys(previous.chosen.positions, whole(width))
    reached = agreement(previous.study.learned, previous.scored, USED, everything).score
    assert reached > 0
    ties = score_variable(previous, {USED: Found(everything, 1.0), UNUSED: Found({}, 1.0)})
    nothing = agreement(previous.study.learned, previous.scored, UNUSED, {}).score
    assert ties == VariableScore((reached + nothing) / 2, reached, 0.5, float(width))
    wrong = score_variable(previous, {USED: Found(everything, 0.0), UNUSED: Found({}, 1.0)})
    assert wrong == VariableScore(nothing, reached, 0.0, 0.0)


def test_a_board_has_a_row_for_each_variable_and_method(case):
    seen = []
    names = ("probe", "random")
    found = variable_board(
        [case], {name: FINDERS[name] for name in names}, SMALL, progress=lambda *s: seen.append(s)
    )
    assert found[["variable", "method"]].to_numpy().tolist() == [["previous", name] for name in names]
    assert seen[-1][1:] == (1, 2)
    assert found["interchange"].between(0, 1).all()


def test_searches_by_gradients_need_logits():
    is_a = (tokens == "a").named("is_a")
    task = task_from_program(programs.frac_prevs(is_a), "abc", 4, causal=True)
    case = compiled_case(compile_for(task, optimize=False), task)
    found = variable_board([case], {name: FINDERS[name] for name in ("das", "probe")}, SMALL)
    assert found["interchange"].isna().tolist() == [True, False]


def test_a_program_without_intermediate_variables_has_no_rows():
    task = task_from_program(programs.shift_by(1), "abc", 5, causal=True)
    assert variable_board([compiled_case(compile_for(task), task)], FINDERS, SMALL).empty
