"""Does attention go where the task forbids it?"""

import pandas as pd
from jaxtyping import Bool
from numpy import ndarray

from rasplens.compare.subject.studied_model import StudiedModel


def attention_leakage(studied: StudiedModel, visible: Bool[ndarray, "query key"]) -> pd.DataFrame:
    """The attention that goes to keys that a query may not see: columns layer, head, leaked.

    Args:
        studied: The model.
        visible: Which keys each query may see; a task's own is `task.visible`.

    Returns:
        One row per head; `leaked` is the largest total on any row of any input, in [0, 1].
    """
    rows = []
    for layer, head in studied.heads:
        forbidden = (studied.pattern(layer)[:, head] * ~visible).sum(axis=-1)
        rows.append({"layer": layer, "head": head, "leaked": float(forbidden.max(initial=0.0))})
    return pd.DataFrame(rows, columns=["layer", "head", "leaked"])
