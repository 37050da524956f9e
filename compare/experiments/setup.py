"""The setup that single experiments share: how much is looked at, and where an activation is."""

from rasplens.compare.config import CompareConfig
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.errors import RaspLensError

CONFIG = CompareConfig(n_inputs=300)
"""The default config: how much is looked at."""


def width_of(studied: StudiedModel, point: str) -> int:
    """How wide an activation is; heads stand side by side.

    Raises:
        RaspLensError: If the model has no such hook point, or no vector stands there at a position.
    """
    if point not in studied.model.hook_dict:
        known = ", ".join(list(studied.model.hook_dict)[:4])
        raise RaspLensError(f"The model has no hook point {point!r}. It has {known}, …")
    activation = studied.first(1).activation(point)
    if activation.ndim != 3 or "attn_scores" in point or "pattern" in point:
        raise RaspLensError(f"{point} holds attention, which has no vector at a position; use `patch_edges`.")
    return int(activation.shape[-1])
