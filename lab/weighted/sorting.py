"""Sort as a weighted median: attention is broad, and votes fall off with the distance from the voter."""

from rasplens.compile import rasp
from rasplens.compile.weighted import (
    Difference,
    Each,
    Keys,
    Mix,
    Number,
    Of,
    Pairs,
    Polynomial,
    Queries,
    Times,
    Vote,
    Votes,
    Weigh,
    When,
)
from rasplens.compile.weighted.tables import Table
from rasplens.tasks import get_task

NUMBERS = tuple(range(50))

ONES = (1.0,) * len(NUMBERS)

LARGE = Number(25.0, 25.0)
"""A number, from -1 to 1."""

KNOTS = (-49, -30, -15, -8, -4, -2, -1, 0, 1, 2, 4, 8, 15, 30, 49)
"""Differences at which what depends on them has a number; it is linear between these."""

SLOPE = 0.33
"""Where the votes start: they fall by this much a unit of distance."""

FIELDS = ("start", "list", "middle", "written")


def sorting() -> Vote:
    """Each number weighs by its distance from the last one written, and votes for what is near itself.

    The number with the most votes is near that at which half of the weight lies on each side: a weighted median.
    What is written where a number stands, and how much is written, add to the weights and the votes.
    """
    task = get_task("sort")
    writing = task.loss_positions
    field = rasp.Map(_field, rasp.indices)
    scores = (
        Weigh(rasp.tokens, rasp.tokens, Times(Queries(Each("asks", NUMBERS, ONES)), Difference("ahead", KNOTS)))
        + Weigh(rasp.tokens, rasp.tokens, Keys(Each("weight", task.vocab)))
        + Weigh(rasp.tokens, rasp.tokens, When(lambda k, q: q == "MID", Keys(_smooth("after MID", 6))))
        + Weigh(field, rasp.indices, Pairs("field", FIELDS, writing))
        + Weigh(rasp.indices, rasp.indices, When(lambda k, q: k == q, Keys(Each("itself", writing))))
    )
    for one in FIELDS[1:]:
        after = When(lambda k, q, one=one: k == one and q != "MID", Queries(_smooth(f"{one} after", 4)))
        scores = scores + Weigh(field, rasp.tokens, after)
    for power in (1, 2, 3):
        by_place: Table = Queries(Each(f"power {power}", writing))
        for _ in range(power):
            by_place = Times(Keys(LARGE), by_place)
        scores = scores + Weigh(rasp.tokens, rasp.indices, by_place)
    tent = Difference("votes", KNOTS, tuple(4.0 - SLOPE * abs(apart) for apart in KNOTS))
    mixed, places = Mix(scores, rasp.tokens), Mix(scores, rasp.indices)
    sizes = Times(Keys(Each("size", NUMBERS, ONES)), Queries(Each("reach", NUMBERS, ONES)))
    counted = Votes(mixed, Times(sizes, tent)) + Votes(mixed, Queries(Each("candidate", NUMBERS)))
    for name, sign in (("first", 1.0), ("second", -1.0)):
        groups = (0, 1, 11, *range(12, task.n_ctx))
        where = Of(_group, Each(f"{name} of place", groups, tuple(0.1 * sign**i for i in range(len(groups)))))
        what = Each(f"{name} of candidate", NUMBERS, tuple(sign * (v - 25) / 25 for v in NUMBERS))
        counted = counted + Votes(places, Times(Keys(where), Queries(what)))
    counted = counted + Votes(rasp.tokens, Difference("own", KNOTS))
    counted = counted + Votes(rasp.tokens, When(lambda u, v: u == "MID", Queries(_smooth("MID votes", 6))))
    return Vote(counted, task.outputs)


def _smooth(name: str, n: int) -> Polynomial:
    return Polynomial(name, LARGE, (0.0,) * n)


def _field(place: int) -> str:
    """The part of an input that a position is in: BOS, the list, MID, or what is written so far."""
    return FIELDS[(place > 0) + (place > 10) + (place > 11)]


def _group(place: int) -> int:
    """One place for the whole list."""
    return 1 if _field(place) == "list" else place
