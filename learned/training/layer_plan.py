"""The plan of what each layer has to compute, so that the loss can be read: decided once, from the mask."""

from dataclasses import dataclass

import numpy as np

Positions = tuple[int, ...]


@dataclass(frozen=True)
class LayerPlan:
    """The plan of what one layer computes.

    Attributes:
        before: Positions at which its input is needed.
        after: Positions at which its output is wanted, all of them among `before`.
        free: Those of `after` that see several keys.
        forced: Those of `after` that see one key only.
        seen: That key, for each of `forced`.
        keys: Positions that some of `free` sees.
    """

    before: Positions
    after: Positions
    free: Positions
    forced: Positions
    seen: Positions
    keys: Positions


def plan_layers(mask: np.ndarray, loss_positions: Positions, smeared_keys: bool = False) -> tuple[LayerPlan, ...]:
    """Return what each layer has to compute, so that the logits at the loss positions come out; first layer first.

    Args:
        mask: Boolean `[layer, query, key]`.
        loss_positions: Where the logits are wanted.
        smeared_keys: Whether a key needs the position before it too.
    """
    plans: list[LayerPlan] = []
    after = tuple(sorted(set(loss_positions)))
    for visible in mask[::-1]:
        sees = {row: tuple(np.flatnonzero(visible[row]).tolist()) for row in after}
        free = tuple(row for row in after if len(sees[row]) > 1)
        forced = tuple(row for row in after if len(sees[row]) == 1)
        seen = tuple(sees[row][0] for row in forced)
        keys = tuple(sorted({key for row in free for key in sees[row]}))
        smeared = previous(keys) if smeared_keys else ()
        before = tuple(sorted({*after, *keys, *seen, *smeared}))
        plans.append(LayerPlan(before, after, free, forced, seen, keys))
        after = before
    return tuple(reversed(plans))


def previous(positions: Positions) -> Positions:
    """The position before each; the first is its own, and mixing it with itself changes nothing."""
    return tuple(max(position - 1, 0) for position in positions)
