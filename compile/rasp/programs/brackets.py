"""A program that closes brackets of several kinds: a stack machine that writes."""

from collections.abc import Iterable, Sequence

from rasplens.compile.rasp.language import (
    Aggregate,
    Map,
    Select,
    SelectBest,
    SelectorWidth,
    SequenceMap,
    SOp,
    causal,
    indices,
    tokens,
)
from rasplens.compile.rasp.programs.described import described


@described
def closing(pairs: Sequence[str], end: str = ".") -> SOp:
    """The bracket that closes the innermost open one; `end` where none is open (the Dyck language).

    Written token by token behind a text, the answers close it. The innermost open bracket is the latest one that
    was opened at the depth of now, so that no stack is kept.

    Not causal-safe: it is meant for models that see only the past; elsewhere, depths are those of the whole text.

    Example:
        >>> closing(["()", "[]"])("([")
        [']', ']']
    """
    closed_by = {pair[0]: pair[1] for pair in pairs}
    depth = (_how_many(closed_by.keys(), "opening") - _how_many(closed_by.values(), "closing")).named("depth")
    opened = SequenceMap(lambda token, n: n if token in closed_by else 0, tokens, depth).named("opened_at_depth")
    innermost = SelectBest(opened, depth, lambda key, query: 0 < key == query, indices).named("innermost")
    closer = Map(lambda token: closed_by.get(token, end), tokens).named("closer")
    return causal(Aggregate(innermost, closer, end)).named("closing")


def _how_many(kinds: Iterable[str], name: str) -> SOp:
    """How many tokens are of some kinds."""
    own = frozenset(kinds)
    return SelectorWidth(Select(tokens, indices, lambda key, _: key in own).named(name)).named(f"n_{name}")
