"""Ways down a loss that do not depend on the axes in which coordinates are written.

A change of a model's basis turns these axes. Adam steps along each by the sign of its gradient, more or less, also
where that is only rounding: so two ways of writing one model would lead it to different places.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

RATE = 0.05
"""Of Adam. Coordinates are of size one."""

MOMENTA = 0.9, 0.999
"""How much of the mean gradient, and of its mean square, a step keeps."""

HISTORY = 20
"""Steps that L-BFGS remembers."""

FLAT = 1e-12
"""Where the gradient is smaller, it is rounding, and there is no way down."""

EVERY = 5
"""After so many steps it is asked whether the coordinates are the best so far."""

BETTER = 0.01
"""A path is followed while its score has become better by more than this."""

MOST_TIMES = 8
"""It ends, at the latest, after so many times the steps that it may take without getting better."""

Coordinates = Float[np.ndarray, "..."]

Loss = Callable[[torch.Tensor], torch.Tensor]
"""From coordinates."""


def first_order(loss: Loss, start: Coordinates) -> Iterator[Coordinates]:
    """The coordinates after each step of Adam, with one mean square for all that belongs to a position.

    It gets over what is flat, or has an edge.
    """
    now = torch.tensor(start, dtype=torch.float64)
    first, second = torch.zeros_like(now), torch.zeros(len(now), 1, 1, dtype=now.dtype)
    for step in itertools.count(1):
        now.requires_grad_()
        (gradient,) = torch.autograd.grad(loss(now), [now])
        first = MOMENTA[0] * first + (1 - MOMENTA[0]) * gradient
        second = MOMENTA[1] * second + (1 - MOMENTA[1]) * (gradient**2).mean(dim=(1, 2), keepdim=True)
        mean, spread = first / (1 - MOMENTA[0] ** step), (second / (1 - MOMENTA[1] ** step)).sqrt()
        now = now.detach() - RATE * mean / spread.clamp_min(torch.finfo(now.dtype).tiny)
        yield now.numpy()


def second_order(loss: Loss, start: Coordinates) -> Iterator[Coordinates]:
    """The coordinates after each step of L-BFGS, until it stands still.

    It gets to the bottom of what is smooth.
    """
    now = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([now], max_iter=1, history_size=HISTORY, line_search_fn="strong_wolfe")
    (gradient,) = torch.autograd.grad(loss(now), [now])
    if gradient.norm() < FLAT:
        return
    # The first step of torch's L-BFGS is as long as the axes say, unless the gradient is at most this large.
    scale = 1 / (gradient.norm() * gradient.numel() ** 0.5)

    def closure() -> torch.Tensor:
        value = scale * loss(now)
        now.grad = torch.autograd.grad(value, [now])[0].contiguous()
        return value

    while True:
        before = now.detach().clone()
        optimiser.step(closure)
        if not now.isfinite().all() or torch.equal(before, now.detach()):
            return
        yield now.detach().numpy().copy()


@dataclass(frozen=True, eq=False)
class End:
    """Where a path of coordinates ends, and where on it they were best.

    Attributes:
        best: Of the coordinates that were scored, the first with the highest score.
        score: That score.
        last: The last coordinates.
    """

    best: Coordinates
    score: float
    last: Coordinates


def followed(
    path: Iterator[Coordinates], start: Coordinates, score: Callable[[Coordinates], float], steps: int
) -> End:
    """Follows a path while it gets better.

    Args:
        path: Of coordinates.
        start: Where it starts.
        score: Of coordinates; higher is better.
        steps: After so many without getting better it ends.
    """
    best, last, reached = start, start, score(start)
    lasting, goes_on_until = reached, steps
    for step, last in enumerate(itertools.islice(path, MOST_TIMES * steps), 1):
        if step % EVERY and step < goes_on_until:
            continue
        if (found := score(last)) > reached:
            best, reached = last, found
        if reached > lasting + BETTER:
            lasting, goes_on_until = reached, step + steps
        if step >= goes_on_until:
            break
    # A path that ends by itself may do so between two scores.
    return End(last, at_end, last) if (at_end := score(last)) > reached else End(best, reached, last)
