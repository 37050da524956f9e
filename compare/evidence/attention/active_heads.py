"""The compiled heads that select something which reaches an answer, and on which query rows."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head

SELECTS = 1e-3
"""Smallest attention to the sequence that counts as selecting something (the rest is on the BOS)."""

Rows = Float[np.ndarray, "input query key"]
"""Attention patterns of one head."""


@dataclass(frozen=True, eq=False)
class ActiveHead:
    """A compiled head and its active query rows.

    Attributes:
        head: Its layer and index.
        variable: The s-op that it computes.
        pattern: Its attention over the sequence; each row adds up to 1, or is zero where it selects nothing.
        active_rows: The query rows on which it selects something that reaches an answer.
        inactive_rows: The query rows on which it selects nothing although it could, and its variable has a value.
        attention: Its attention as it is, without what a BOS takes.
    """

    head: Head
    variable: str
    pattern: Rows
    active_rows: Bool[np.ndarray, "input query"]
    inactive_rows: Bool[np.ndarray, "input query"]
    attention: Rows

    @property
    def counts(self) -> bool:
        """Whether it leaves a BOS a share wherever it selects something, as heads that count do."""
        return bool((self.attention.sum(axis=-1)[self.active_rows] < 1 - SELECTS).all())


def active_heads(pairing: Pairing) -> list[ActiveHead]:
    """The compiled heads with an active query row on some input."""
    rows = pairing.relevance.rows
    found = (_active_head(pairing, head, name, rows[head]) for head, name in pairing.compiled.heads.items())
    return [active for active in found if active.active_rows.any()]


def _active_head(pairing: Pairing, head: Head, variable: str, relevant: list[int]) -> ActiveHead:
    layer, index = head
    pattern = pairing.reference.pattern(layer)[:, index]
    total = pattern.sum(axis=-1)
    active = np.zeros(total.shape, dtype=bool)
    active[:, relevant] = total[:, relevant] > SELECTS
    # A row that can only see one position attends to it whatever the model does.
    active &= (pairing.task.visible.sum(axis=-1) > 1)[None]
    selects = total > SELECTS
    # Nothing selected has a meaning where the variable has a value all the same: a default, or a count of 0. Of a
    # variable that is held in its maps alone, that is not known.
    has_value = pairing.codes[variable] >= 0 if variable in pairing.codes else np.zeros_like(active)
    inactive = active.any(axis=0) & ~selects & has_value
    return ActiveHead(head, variable, over_sequence(pattern), active, inactive, pattern)


def over_sequence(pattern: Float[np.ndarray, "... query key"]) -> Float[np.ndarray, "... query key"]:
    """Attention of which each row adds up to 1, without what a BOS takes; zero where nothing else is selected."""
    total = pattern.sum(axis=-1, keepdims=True)
    selects = total > SELECTS
    return np.where(selects, pattern / np.where(selects, total, 1), 0)
