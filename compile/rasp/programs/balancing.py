"""Programs that average over the past: shares, balances, and brackets that match."""

from collections.abc import Sequence
from functools import reduce

from rasplens.compile.rasp.language import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SOp,
    Value,
    indices,
    numerical,
    tokens,
)
from rasplens.compile.rasp.programs.described import described


@described
def frac_prevs(sop: SOp) -> SOp:
    """The share of positions up to here at which an s-op is true.

    Causal-safe.

    Example:
        >>> frac_prevs(tokens == "x")("axx")
        [0, 0.5, 0.6666666666666666]
    """
    so_far = Select(indices, indices, Comparison.LEQ).named("so_far")
    return numerical(Aggregate(so_far, numerical(sop), default=0)).named("frac_prevs")


@described
def pair_balance(opening: Value, closing: Value) -> SOp:
    """How much more often a token than another has occurred so far, per position.

    Causal-safe.

    Example:
        >>> pair_balance("(", ")")("(()")
        [1, 1, 0.3333333333333333]
    """
    sign = numerical(Map(lambda token: (token == opening) - (token == closing), tokens)).named("sign")
    return frac_prevs(sign).named(f"balance_{opening}{closing}")


@described
def shuffle_dyck(pairs: Sequence[str]) -> SOp:
    """Whether brackets of several kinds each match, whatever the others do; at every position.

    Each kind must never have been closed more often than opened, and be even at the end.

    Source: Weiss et al. 2021, section 5, "Shuffle-Dyck-k".

    Not causal-safe: whether all are closed shows at the end.

    Example:
        >>> shuffle_dyck(["()", "{}"])("({)}")
        [True, True, True, True]
        >>> shuffle_dyck(["()"])(")(")
        [False, False]
    """
    balances = [pair_balance(pair[0], pair[1]) for pair in pairs]
    is_negative = reduce(lambda x, y: x | y, [balance < 0 for balance in balances])
    is_uneven = reduce(lambda x, y: x | y, [(balance > 0) | (balance < 0) for balance in balances])
    length = SelectorWidth(Select(tokens, tokens, Comparison.TRUE)).named("length")
    is_last = (length - indices == 1).named("is_last")
    is_wrong = numerical(is_negative | (is_uneven & is_last)).named("is_wrong")
    everywhere = Select(tokens, tokens, Comparison.TRUE)
    share_wrong = numerical(Aggregate(everywhere, is_wrong)).named("share_wrong")
    return (share_wrong == 0).named("shuffle_dyck")
