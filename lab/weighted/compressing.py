"""Compression as digits with sizes: SEP weighs the two, and a little of the weight carries their order."""

from collections.abc import Sequence

from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compile import rasp
from rasplens.compile.weighted import (
    Constant,
    Each,
    Keys,
    Mix,
    Polynomial,
    Queries,
    Vote,
    Votes,
    Weigh,
    When,
)
from rasplens.compile.weighted.tables import Curve
from rasplens.model.hook_points import act_name
from rasplens.model.transformer import AnyModel
from rasplens.tasks import get_task

FIRST, SEP, FIRST_ANSWER, SECOND_ANSWER = 0, 2, 3, 4
"""Positions."""

DIGITS = tuple(range(100))

DEGREE = 5
"""Of the polynomials."""


def sizes(model: AnyModel) -> Sequence[float]:
    """Where the digits' sizes start: how SEP scores each as first digit, less the mean and over the deviation."""
    task = get_task("compression")
    ids = task.ids([[digit, digit, "SEP", "MASK", "MASK"] for digit in DIGITS])
    scores = as_studied_model(model, task, ids).whole(act_name("attn_scores", 0))[:, 0, SEP, FIRST]
    return tuple(((scores - scores.mean()) / scores.std()).tolist())


def compressing(sizes: Sequence[float]) -> Vote:
    """SEP mixes the digits by their sizes; both answers vote by the mixture, and the second sees it more or less.

    A digit has one number, its size. How much it weighs, how many votes it casts, and how many it has from the
    start are polynomials of it.

    Args:
        sizes: Where the sizes start, one for each digit.
    """
    task = get_task("compression")
    size = Each("size", DIGITS, tuple(sizes))

    def curve(name: str, *start: float) -> Curve:
        return Polynomial(name, size, (*start, *[0.0] * (DEGREE + 1 - len(start))))

    def at(position: int, name: str, *start: float) -> When:
        return When(lambda place, candidate: place == position, Queries(curve(name, *start)))

    weighed = Weigh(
        rasp.tokens, rasp.tokens, When(lambda k, q: k in DIGITS, Keys(curve("weight", 0.0, 2.0)))
    ) + Weigh(rasp.indices, rasp.indices, When(lambda k, q: k == FIRST, Keys(Constant("first", 0.1))))
    mixed, places = Mix(weighed, rasp.tokens), Mix(weighed, rasp.indices)
    looked = (
        Weigh(mixed, rasp.indices, When(lambda k, q: k in DIGITS, Keys(curve("seen", 1.0))))
        + Weigh(places, rasp.indices, When(lambda k, q: k == FIRST, Keys(Constant("first seen"))))
        + Weigh(rasp.indices, rasp.indices, When(lambda k, q: k == SEP, Keys(Constant("sep"))))
    )
    same = When(lambda u, v: u == v and v in DIGITS, Queries(curve("votes", 10.0)))
    counted = (
        Votes(Mix(looked, mixed), same)
        + Votes(Mix(looked, places), at(FIRST, "from first"))
        + Votes(Mix(looked, rasp.indices), at(SEP, "from both"))
        + Votes(rasp.indices, at(FIRST_ANSWER, "first answer"))
        + Votes(rasp.indices, at(SECOND_ANSWER, "second answer"))
    )
    return Vote(counted, task.outputs)
