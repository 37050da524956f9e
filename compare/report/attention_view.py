"""The data of a report's attention viewer: each compiled head beside the learned one it is matched with."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.attention.active_heads import active_heads
from rasplens.compare.report.sentences import table
from rasplens.compare.subject.studied_model import Head

N_INPUTS = 5
"""Inputs that the reader can choose among."""

FULL = 255
"""The integer that stands for an attention weight of 1."""


@dataclass(frozen=True)
class HeadPair:
    """A compiled head beside a learned one.

    Attributes:
        title: Both, and the variable that the compiled head gathers.
        compiled: Its attention on each input, `[input][query][key]` in 0 to `FULL`.
        learned: The same of the learned head.
    """

    title: str
    compiled: list[list[list[int]]]
    learned: list[list[list[int]]]


@dataclass(frozen=True)
class AttentionView:
    """Patterns of attention on a few inputs.

    Attributes:
        positions: The name of each position.
        inputs: The tokens of each input.
        pairs: Each compiled head with its learned one.
    """

    positions: list[str]
    inputs: list[list[str]]
    pairs: list[HeadPair]

    def to_dict(self) -> dict[str, object]:
        """In JSON values."""
        return asdict(self)


def attention_view(comparison: Comparison) -> AttentionView | None:
    """The heads of a comparison on its first inputs; None for one that was loaded, or has no head to show."""
    pairing = comparison.pairing
    if pairing is None:
        return None
    matches = best_matches(comparison)
    pairs = []
    for active in active_heads(pairing):
        if active.head in matches:
            layer, index = matches[active.head]
            pairs.append(
                HeadPair(
                    f"{head_name(active.head)}, {active.variable} · {head_name((layer, index))}",
                    _weights(active.pattern[:N_INPUTS]),
                    _weights(pairing.learned.pattern(layer)[:N_INPUTS, index]),
                )
            )
    if not pairs:
        return None
    task = pairing.task
    inputs = [[task.token_names[i] for i in ids] for ids in pairing.ids[:N_INPUTS].tolist()]
    return AttentionView(list(task.positions), inputs, pairs)


def best_matches(comparison: Comparison) -> Mapping[Head, Head]:
    """For each compiled head the learned head that is matched with it, else the most similar one."""
    found = table(comparison, "attention")
    if found.empty:
        return {}
    ranked = found.sort_values(["matched", "similarity"], ascending=False)
    best = ranked.groupby(["compiled_layer", "compiled_head"])[["layer", "head"]].first()
    return {
        compiled: tuple(learned) for compiled, learned in zip(best.index, best.to_numpy().tolist(), strict=True)
    }


def head_name(head: Head) -> str:
    """A head as the field writes it: L0H1."""
    return "L{}H{}".format(*head)


def _weights(patterns: np.ndarray) -> list[list[list[int]]]:
    return np.rint(FULL * patterns).astype(int).tolist()
