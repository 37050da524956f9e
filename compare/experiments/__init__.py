"""Single interventions on any model: patching, interchange, a search for a subspace, and what edges carry.

`compare` does all of these and decides. Here each stands alone, for an experiment of one's own in a few lines.

All functions share these parameters:
    model: Anything that `compare` takes as a learned model.
    program: An s-op, a `CompiledModel`, or the name of one of the task's programs.
    task: What the model is asked, or its name.
    positions: Of the task, by place or name.
    config: How many inputs and pairs.
    seed: Of the choice of inputs and of the controls.
    vocabulary: The model's vocabulary for the task, if it is not the task's own.
"""

from rasplens.compare.experiments.interchanging import Interchanged, find_subspaces, interchange
from rasplens.compare.experiments.patching import Patched, patch, patch_edges, scrub

__all__ = ["Interchanged", "Patched", "find_subspaces", "interchange", "patch", "patch_edges", "scrub"]
