"""Whether a model's hook points are alive: activations pass them, and what is edited there reaches the logits.

A bridge may have a hook point that shows a copy of an activation, or that nothing ever passes. An edit there
changes no answer, which reads as evidence.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch

from rasplens.errors import RaspLensError


def check_live(model: Any, tokens: torch.Tensor, points: Iterable[str]) -> None:
    """Raises unless all hook points are alive.

    To each activation a zero is added of which the logits depend if they depend on the activation: one pass tells
    of all points, also where what passes has no effect on these inputs.

    Args:
        model: A torch module with `run_with_hooks`.
        tokens: Inputs, where the model is.
        points: The hook points.

    Raises:
        RaspLensError: Naming the first that is not.
    """
    added: dict[str, torch.Tensor] = {}

    def adds(point: str) -> Callable[..., torch.Tensor]:
        def edit(value: torch.Tensor, hook: object) -> torch.Tensor:
            added[point] = torch.zeros_like(value, requires_grad=True)
            return value + added[point]

        return edit

    points = list(points)
    with torch.enable_grad():
        logits = model.run_with_hooks(tokens, fwd_hooks=[(point, adds(point)) for point in points])
        known = [point for point in points if point in added]
        grads = torch.autograd.grad(logits.sum(), [added[point] for point in known], allow_unused=True)
    live = {point for point, grad in zip(known, grads, strict=True) if grad is not None}
    if dead := [point for point in points if point not in live]:
        what = "edits there do not reach the logits" if dead[0] in added else "no activation passes it"
        raise RaspLensError(
            f"The model's hook point {dead[0]!r} is not live: {what}, so no intervention can work there. Name "
            "the model's parts with rasplens.learned.adapt."
        )
