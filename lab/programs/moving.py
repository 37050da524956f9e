"""Programs that fetch what stands at another position: in one step, or by way of a third one."""

from collections.abc import Callable

from lab.programs.counting import count
from lab.programs.selectors import Place, at, holds
from rasplens.compile.rasp import Aggregate, Comparison, Map, Select, SOp, indices, tokens


def moved(of: SOp, place: Place, name: str) -> SOp:
    """The values of an s-op at the place that each position looks at."""
    return Aggregate(at(place), of).named(name)


def pointed(of: SOp, target: SOp, name: str) -> SOp:
    """The values of an s-op at the place that another s-op says."""
    return Aggregate(Select(indices, target, Comparison.EQ).named(f"at_{name}"), of).named(name)


def fetched(of: SOp, place: Place, name: str) -> SOp:
    """The values of an s-op at a place that each position computes before it looks there."""
    return pointed(of, Map(place, indices).named(f"where_{name}"), name)


def relayed(first: Place, then: Place, via: str, name: str, step: Callable[[SOp, Place, str], SOp] = moved) -> SOp:
    """The tokens in two steps, each `moved` or `fetched`: the first leaves them in a variable `via`."""
    return step(step(tokens, first, via), then, name)


def pointed_at_by_count() -> SOp:
    """The token, of 5, that the number of `a`s points at: by counting them."""
    place = Map(lambda n: n % 5, count(holds("a"), "number_of_a")).named("place")
    return pointed(tokens, place, "pointed_at_by_count")


def pointed_at_by_rest() -> SOp:
    """The token, of 5, that the number of `a`s points at: by counting all others."""
    others = count(Select(tokens, tokens, lambda key, query: key != "a"), "number_of_others")
    return pointed(tokens, Map(lambda n: (5 - n) % 5, others).named("place_by_others"), "pointed_at_by_rest")
