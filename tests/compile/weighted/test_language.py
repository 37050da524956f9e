"""Programs are made of parts, and their numbers can be exchanged."""

import numpy as np
import pytest
from weighted_samples import LETTERS, reverse, same, two_steps

from rasplens.compile import rasp
from rasplens.compile.weighted import Constant, Keys, Mix, Vote, Votes, Weigh, numbers_of, with_numbers
from rasplens.compile.weighted.language import parts_of, sops_of
from rasplens.errors import RaspLensError


def test_parts_come_after_what_they_read_and_once():
    program = two_steps()
    parts = list(parts_of(program))
    assert parts[-1] is program
    assert len({id(part) for part in parts}) == len(parts)
    first, second = sops_of(program)
    assert first is rasp.tokens
    assert second is rasp.indices


def test_numbers_are_counted_and_exchanged():
    program = reverse(sharp=3.0)
    assert program.n_numbers == 2
    assert repr(program) == "<Vote for one of 3 candidates: 2 numbers>"
    changed = with_numbers(program, {"sharp": np.array([1.0])})
    assert numbers_of(changed)["sharp"] == [1.0]
    assert numbers_of(program)["sharp"] == [3.0]


@pytest.mark.parametrize(
    ("given", "said"), [({"blunt": np.zeros(1)}, "'blunt'.*sharp"), ({"sharp": np.zeros(2)}, r"\(1,\)")]
)
def test_strange_numbers_are_refused(given, said):
    with pytest.raises(RaspLensError, match=said):
        with_numbers(reverse(), given)


def test_two_tables_that_disagree_on_a_name_are_refused():
    scores = Weigh(rasp.tokens, rasp.tokens, Keys(Constant("votes", 1.0)))
    with pytest.raises(RaspLensError, match="'votes'"):
        Vote(Votes(Mix(scores, rasp.tokens), same("votes", 2.0)), LETTERS)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Mix(same(), rasp.tokens), "`scores` of Mix.*Weigh"),
        (lambda: Mix(Votes(rasp.tokens, same()), rasp.tokens), "`scores` of Mix.*Weigh"),
        (lambda: Weigh("tokens", rasp.tokens, same()), "`keys` of Weigh.*s-op"),
        (lambda: Weigh(rasp.tokens, rasp.tokens, lambda k, q: 1.0), "`score` of Weigh.*table"),
        (lambda: Votes(rasp.tokens, 1.0), "`gain` of Votes.*table"),
        (lambda: Vote(Weigh(rasp.tokens, rasp.tokens, same()), LETTERS), "`votes` of Vote.*Votes"),
        (
            lambda: Votes(rasp.tokens, same()) + Weigh(rasp.tokens, rasp.tokens, same()),
            "Scores are added to scores",
        ),
        (lambda: Votes(rasp.tokens, same()) + 1, r"unsupported operand"),
    ],
)
def test_strange_parts_are_refused(wrong, said):
    with pytest.raises(TypeError, match=said):
        wrong()
