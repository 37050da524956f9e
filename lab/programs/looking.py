"""Programs that say whether something is there: by what is gathered, by how much is selected, or by comparing."""

from lab.programs.averaging import mean
from lab.programs.counting import count
from lab.programs.moving import fetched, moved
from lab.programs.selectors import EVERYWHERE, ONE_BACK, SAME, Place, always, at, holds
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectBest,
    Selector,
    SequenceMap,
    SOp,
    Value,
    Where,
    causal,
    indices,
    tokens,
)


def found(where: Selector, name: str, gathered: str = "") -> SOp:
    """Whether a selector finds anything: by what it gathers there, in a variable `gathered`."""
    ones = Aggregate(where, Map(lambda t: 1, tokens), default=0).named(gathered or f"{name}_found")
    return (ones == 1).named(name)


def counted(where: Selector, name: str, width: str = "", more_than: int = 0) -> SOp:
    """Whether a selector selects more than so much: by counting, in a variable `width`."""
    return (count(where, width or f"{name}_width") > more_than).named(name)


def majority_by_others() -> SOp:
    """Whether most of 7 tokens, of two kinds, are `a`: by counting the others."""
    return (count(holds("b"), "count_of_b") < 4).named("majority_by_others")


def equal_by_reading(place: Place, read: str, name: str, own: SOp = tokens) -> SOp:
    """Whether the token at a place is the own one: it is read, then compared."""
    return (own == moved(tokens, place, read)).named(name)


def equal_by_looking(place: Place, gathered: str, name: str, own: SOp = tokens) -> SOp:
    """Whether the token at a place is the own one: only an equal one is looked at there."""
    return found(Select(tokens, own, Comparison.EQ) & at(place), name, gathered)


def previous_equal_by_gathering() -> SOp:
    """Whether the token before equals mine: it is fetched, then compared."""
    return (Aggregate(ONE_BACK, tokens).named("before") == tokens).named("previous_equal_by_gathering")


def latest_a() -> Selector:
    """The last `a`."""
    return SelectBest(tokens, tokens, lambda key, query: key == "a", indices)


def highest_above() -> Selector:
    """Of the numbers above the own one the highest, the last of several."""
    return SelectBest(tokens, tokens, Comparison.GT, tokens)


def first_other() -> Selector:
    """The first token that is not the own one."""
    return SelectBest(tokens, tokens, Comparison.NEQ, Map(lambda i: -i, indices).named("earliness"))


def unless_first_is(token: Value, program: SOp, otherwise: SOp) -> SOp:
    """A program, but something else where the first token is a certain one: of one in as many as there are."""
    first = moved(tokens, always(0), f"first_for_{program.name}")
    is_it = SequenceMap(lambda x, y: x == token, first, tokens).named(f"first_is_{token}")
    return Where(is_it, otherwise, program).named(f"{program.name}_but_once")


def palindrome(equal_opposite: SOp, name: str) -> SOp:
    """Whether every token equals its opposite: the mean of what each says of itself."""
    return (mean(equal_opposite, "share_equal", EVERYWHERE, default=None) == 1).named(name)


def palindrome_so_far(equal_opposite: SOp, length: int, name: str) -> SOp:
    """Whether the first `length` tokens are a palindrome, from the past: what the second half says of itself."""
    half = Select(indices, indices, lambda key, query: length // 2 <= key < length and query == length)
    share = mean(equal_opposite, "share_equal", half.named("second_half"), default=None)
    return causal((share == 1).named(name))


def opposite_by_gathering(length: int) -> SOp:
    """Whether each token equals its opposite, of the first `length`: it is fetched, then compared."""
    return (fetched(tokens, lambda i: length - 1 - i, "opposite") == tokens).named("is_equal")


def opposite_by_looking(length: int) -> SOp:
    """Whether each token equals its opposite, of the first `length`: an equal one is looked for there."""
    mirrored = Map(lambda i: length - 1 - i, indices).named("mirrored")
    return counted(SAME & Select(indices, mirrored, Comparison.EQ).named("facing"), "is_equal", "hits")
