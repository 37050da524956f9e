"""Programs that pass a list through one position."""

from rasplens.compile.rasp.language import Aggregate, Select, SOp, Where, indices, tokens
from rasplens.compile.rasp.programs.described import described

FIRST, SECOND, SEPARATOR, FIRST_OUTPUT, SECOND_OUTPUT = range(5)


@described
def slots() -> SOp:
    """Gives the two digits of `[d1, d2, SEP, o1, o2]` back at o1 and o2, by way of SEP.

    SEP gathers the first and the second digit into variables of their own; each output position reads
    its own from SEP. Elsewhere the result is undefined.

    Causal-safe: every position reads the past.

    Example:
        >>> slots()([3, 1, "SEP", "MASK", "MASK"])
        [None, None, None, 3, 1]
    """
    first, second = _gathered()
    read_first = Aggregate(_one_edge(SEPARATOR, FIRST_OUTPUT), first).named("read_first")
    read_second = Aggregate(_one_edge(SEPARATOR, SECOND_OUTPUT), second).named("read_second")
    is_first_output = (indices == FIRST_OUTPUT).named("is_first_output")
    return Where(is_first_output, read_first, read_second).named("slots")


@described
def read_both() -> SOp:
    """Gives the two digits of `[d1, d2, SEP, o1, o2]` back at o1 and o2, with one selector.

    Each output position reads both digits from SEP, and says its own.

    Causal-safe: every position reads the past.

    Example:
        >>> read_both()([3, 1, "SEP", "MASK", "MASK"])
        [None, None, None, 3, 1]
    """
    first, second = _gathered()
    separator = Select(indices, indices, lambda key, query: key == SEPARATOR and query > SEPARATOR)
    read_first = Aggregate(separator, first).named("read_first")
    read_second = Aggregate(separator, second).named("read_second")
    is_first_output = (indices == FIRST_OUTPUT).named("is_first_output")
    return Where(is_first_output, read_first, read_second).named("read_both")


def _gathered() -> tuple[SOp, SOp]:
    """The two digits at SEP."""
    first = Aggregate(_one_edge(FIRST, SEPARATOR), tokens).named("first")
    second = Aggregate(_one_edge(SECOND, SEPARATOR), tokens).named("second")
    return first, second


def _one_edge(source: int, destination: int) -> Select:
    """The selector that lets one position attend to one other."""
    return Select(indices, indices, lambda key, query: key == source and query == destination)
