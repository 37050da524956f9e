"""Which aggregates of a program feed the selectors and the values of others."""

from dataclasses import dataclass

from rasplens.compare.claims.edges.program_edges import Aggregates, gathering
from rasplens.compile import rasp
from rasplens.compile.rasp import SOp
from rasplens.compile.rasp.interpreter import expressions
from rasplens.model.interventions import EdgePart


@dataclass(frozen=True)
class Feeds:
    """What some aggregates gather is read by others, with nothing gathered in between.

    Attributes:
        source: The aggregates that are read.
        part: What of the others reads them: the keys or the queries of their selector, or their values.
        reader: The aggregates that read.
    """

    source: Aggregates
    part: EdgePart
    reader: Aggregates


def feeding(program: SOp) -> tuple[Feeds, ...]:
    """The feeding of a program's aggregates, each once, in the order of their readers."""
    names, found = gathering(program), dict[Feeds, None]()
    leaves = {id(one): names[id(one.selector)] for one in expressions(program) if isinstance(one, rasp.Aggregate)}
    for reader in expressions(program):
        if not isinstance(reader, rasp.Aggregate):
            continue
        reading: list[tuple[EdgePart, SOp]] = [("values", reader.sop)]
        for expr in expressions(reader.selector, leaves):
            if isinstance(expr, rasp.Select | rasp.SelectBest):
                reading += [("keys", expr.keys), ("queries", expr.queries)]
            if isinstance(expr, rasp.SelectBest):
                reading += [("keys", expr.score)] if isinstance(expr.score, SOp) else []
        for part, sop in reading:
            sources = [leaves[id(expr)] for expr in expressions(sop, leaves) if id(expr) in leaves]
            found |= dict.fromkeys(Feeds(source, part, leaves[id(reader)]) for source in sources)
    return tuple(found)
