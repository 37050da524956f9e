"""Copy as a vote over matches one step back."""

from rasplens.compile import rasp
from rasplens.compile.weighted import (
    Constant,
    Each,
    Keys,
    Mix,
    Number,
    Of,
    Rest,
    Times,
    Vote,
    Votes,
    Weigh,
    When,
)
from rasplens.compile.weighted.tables import Curve
from rasplens.tasks import get_task

MATCHES, SIZES = (9.3, 3.5, 9.3, 9.5), (6.8, 5.9, 2.2, 2.0)
"""Where each head's numbers start: how much a match counts, and the size of its vote."""

PLACES = (1, 7, 11, 13, 15, 18)
"""Keys of these positions and those behind them share one smear; the key of position 0 has no letter before it."""

SMEARS = (0.9, 0.05, 0.7, 0.2, 0.9, 0.2)
"""Where the smears start."""


def copying() -> Vote:
    """Each of four heads looks for the query's letter one step back, and votes for the letter that it finds there.

    In each key, the letter before has some of the weight, by position. The query's own letter is disfavoured.
    """
    task = get_task("copy")
    before = rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == q - 1), rasp.tokens)
    here, back = (rasp.SequenceMap(lambda i, t: (i, t), rasp.indices, one) for one in (rasp.tokens, before))
    counted = Votes(rasp.tokens, When(lambda u, v: u == v, Keys(Constant("own", -6.2))))
    for head, (match, size) in enumerate(zip(MATCHES, SIZES, strict=True)):
        share = _smear(f"smear {head // 2}")
        scores = Weigh(rasp.indices, rasp.indices, Times(Keys(Number(task.n_ctx)), Keys(Constant(f"late {head}"))))
        for keys, part in ((here, Rest(share)), (back, share)):
            matched = Times(Keys(Constant(f"match {head}", match)), Keys(part))
            scores = scores + Weigh(keys, rasp.tokens, When(lambda k, q: k[1] == q, matched))
        gain = When(lambda u, v: u == v, Keys(Constant(f"size {head}", size)))
        counted = counted + Votes(Mix(scores, rasp.tokens), gain)
    return Vote(counted, task.outputs)


def _smear(name: str) -> Curve:
    """The weight of the letter before in a key, by the key's position; the letter itself has the rest."""

    def place(key: tuple[int, str]) -> int:
        return max(one for one in (0, *PLACES) if one <= key[0])

    return Of(place, Each(name, PLACES, SMEARS))
