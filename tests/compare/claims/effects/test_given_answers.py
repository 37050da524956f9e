"""The answers of a part: they are the program's more often than by chance."""

import pytest
from known_trials import known_trials

from rasplens.compare import study_of
from rasplens.compare.claims.effects.given_answers import AGREEMENT, Agreement, agrees
from rasplens.compare.claims.kind import Evidence
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN
from rasplens.learned import Architecture, untrained


@pytest.mark.parametrize(
    ("right", "of", "chance", "status"),
    [(50, 200, 0.05, HOLDS), (50, 200, 0.25, FAILS), (6, 20, 0.1, OPEN), (200, 200, 0.95, HOLDS)],
)
def test_few_answers_are_enough_if_they_are_more_than_by_chance(right, of, chance, status):
    trials = known_trials([i < right for i in range(of)])
    found, said = agrees(Agreement(trials, chance), 1)
    assert (found.score, said) == (right / of, status)


def test_chance_is_how_often_shuffled_answers_agree(mixed_induction, mixed_task, brief):
    noise = untrained(Architecture(1, 1, 8, 8), mixed_task, seed=0)
    for model, agrees_always in ((mixed_induction, True), (noise, False)):
        study = study_of(mixed_induction, model, mixed_task, brief, 0, as_part=True)
        found = AGREEMENT.test(study, Evidence(), 0)
        assert bool(found.trials.right.all()) == agrees_always
        assert found.chance < 0.4  # of eight letters
