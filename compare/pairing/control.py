"""The control of a comparison: an untrained model of the learned one's shape."""

import copy
from typing import Any

import torch

from rasplens.learned import untrained_like
from rasplens.model.hooked import HookedModel


def untrained_control(model: Any, seed: int) -> Any:
    """An untrained model of the same shape.

    It is initialised anew, or, for a model that is not ours, has normal entries with the mean and the spread of
    each of its parameters: shuffled entries of a sparse one, such as a compiled model's, might do nothing at all.
    """
    if isinstance(model, HookedModel):
        return HookedModel(untrained_like(model.cfg, model.to_transformer().mask, seed)).to(str(model.mask.device))
    twin, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed % 2**63)
    with torch.no_grad():
        for parameter in twin.parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.copy_(parameter.mean() + parameter.std(correction=0) * drawn.to(parameter.device))
    return twin
