"""Second axis: which learned head attends like which compiled head.

Attention is compared row by row, only where the compiled head acts: where it selects something, and what
it writes there reaches an answer. A row's similarity is 1 minus the Jensen-Shannon divergence in bits, in
[0, 1]. Much of it comes from position alone; so it stands beside the same score with every learned row
held against the compiled row of *another* input, and the difference is what content explains.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.optimize import linear_sum_assignment
from scipy.special import rel_entr

from rasplens.compare.live import live_rows
from rasplens.compare.pairing import Pairing
from rasplens.compare.subject import Head

SELECTS = 1e-3
"""The least attention to the sequence that counts as selecting something (the rest is on the BOS)."""

Rows = Float[np.ndarray, "input query key"]


COLUMNS = (
    "compiled_layer", "compiled_head", "variable", "layer", "head", "rows", "similarity", "shuffled", "content",
)  # fmt: skip
"""What is said of each pair of heads."""


@dataclass(frozen=True, eq=False)
class ActiveHead:
    """A compiled head and the rows on which it acts.

    Attributes:
        head: Its layer and index.
        variable: The s-op that it computes.
        pattern: Its attention over the sequence; each row adds up to 1, or is zero where it selects nothing.
        acts: Which rows those are.
    """

    head: Head
    variable: str
    pattern: Rows
    acts: Bool[np.ndarray, "input query"]


def head_similarities(pairing: Pairing, seed: int) -> pd.DataFrame:
    """The similarity of every compiled head with every learned head.

    Returns:
        One row per pair: compiled_layer, compiled_head, variable, layer, head, rows (how many were
        compared), similarity, shuffled (the control), content (their difference), and matched (whether
        the best one-to-one assignment joins the two). Heads that act nowhere are absent.
    """
    shuffle = _derangement(len(pairing.ids), np.random.default_rng([seed, 3]))
    rows = [
        _compare(active, pairing, head, shuffle)
        for active in active_heads(pairing)
        for head in pairing.learned.heads
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame["matched"] = _assignment(frame) if rows else np.zeros(0, dtype=bool)
    return frame


def active_heads(pairing: Pairing) -> list[ActiveHead]:
    """The compiled heads that act on some row of some input."""
    rows = live_rows(pairing.reference)
    found = (_active_head(pairing, head, name, rows[head]) for head, name in pairing.compiled.heads.items())
    return [active for active in found if active.acts.any()]


def _active_head(pairing: Pairing, head: Head, variable: str, live: list[int]) -> ActiveHead:
    layer, index = head
    pattern = pairing.reference.pattern(layer)[:, index]
    total = pattern.sum(axis=-1)
    acts = np.zeros(total.shape, dtype=bool)
    acts[:, live] = total[:, live] > SELECTS
    # A row that can only see one position attends to it whatever the model does.
    acts &= (pairing.task.visible.sum(axis=-1) > 1)[None]
    selects = (total > SELECTS)[..., None]
    return ActiveHead(head, variable, np.where(selects, pattern / np.where(selects, total[..., None], 1), 0), acts)


def similarity(
    first: Float[np.ndarray, "row key"], second: Float[np.ndarray, "row key"]
) -> Float[np.ndarray, " row"]:
    """1 minus the Jensen-Shannon divergence in bits of each pair of rows, in [0, 1]."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    middle = (first + second) / 2
    divergence = (rel_entr(first, middle) + rel_entr(second, middle)).sum(axis=-1) / (2 * np.log(2))
    return 1 - np.clip(divergence, 0, 1)  # rounding can leave it just outside


def _compare(active: ActiveHead, pairing: Pairing, head: Head, shuffle: np.ndarray) -> dict[str, object]:
    layer, index = head
    learned = pairing.learned.pattern(layer)[:, index]
    same = _mean_similarity(active.pattern, learned, active.acts)
    other = _mean_similarity(active.pattern[shuffle], learned, active.acts[shuffle])
    return {
        "compiled_layer": active.head[0],
        "compiled_head": active.head[1],
        "variable": active.variable,
        "layer": layer,
        "head": index,
        "rows": int(active.acts.sum()),
        "similarity": same,
        "shuffled": other,
        "content": same - other,
    }


def _mean_similarity(compiled: Rows, learned: Rows, acts: np.ndarray) -> float:
    rows = learned[acts]
    total = rows.sum(axis=-1, keepdims=True)
    # A learned row that the model's mask keeps silent attends to nothing: it is unlike any other.
    scores = np.where(total[:, 0] > 0, similarity(compiled[acts], rows + (total == 0)), 0.0)
    return float(scores.mean())


def _assignment(frame: pd.DataFrame) -> np.ndarray:
    """Whether the assignment of heads with the highest total similarity joins each pair."""
    table = frame.pivot_table(
        index=["compiled_layer", "compiled_head"], columns=["layer", "head"], values="similarity"
    )
    chosen = zip(*linear_sum_assignment(table.to_numpy(), maximize=True), strict=True)
    pairs = {(*table.index[row], *table.columns[column]) for row, column in chosen}
    keys = frame[["compiled_layer", "compiled_head", "layer", "head"]]
    return np.array([tuple(row) in pairs for row in keys.itertuples(index=False)])


def _derangement(n: int, rng: np.random.Generator) -> np.ndarray:
    """A permutation that leaves nothing in place: a random cycle."""
    order = rng.permutation(n)
    shuffled = np.empty(n, dtype=int)
    shuffled[order] = np.roll(order, 1)
    return shuffled
