"""Programs that continue a repetition: two algorithms for one task."""

from rasplens.compile.rasp.language import Aggregate, Comparison, Select, SelectBest, SOp, causal, indices, tokens
from rasplens.compile.rasp.programs.described import described


@described
def offset(period: int) -> SOp:
    """The next token of a sequence that repeats itself every `period` tokens, by position.

    It reads `period - 1` positions back: what stood there follows what stands here.

    Causal-safe: it reads the past.

    Example:
        >>> offset(3)(["a", "b", "c", "a", "b"])
        [None, None, 'a', 'b', 'c']
    """
    back = Select(indices, indices, lambda key, query: key == query - (period - 1)).named("one_period_back")
    return Aggregate(back, tokens).named("offset")


@described
def induction() -> SOp:
    """The next token of a sequence that repeats itself, by content.

    It reads the token after the latest earlier occurrence of the current one (Olsson et al. 2022): a
    first head moves every token one position on, a second attends to where that equals the current one.

    Causal-safe in causal mode only: otherwise the latest occurrence may lie in the future.

    Example:
        >>> from rasplens.compile import run
        >>> run(induction(), ["a", "b", "c", "a", "b"], causal=True)
        [None, None, None, 'b', 'c']
    """
    before = Select(indices, indices, lambda key, query: key == query - 1).named("one_back")
    previous = Aggregate(before, tokens).named("previous")
    latest = SelectBest(previous, tokens, Comparison.EQ, indices).named("after_latest_match")
    return causal(Aggregate(latest, tokens)).named("induction")
