"""Inputs that break the regularities of a task's own: what goes together there comes apart here."""

import numpy as np

from rasplens.tasks.task import Ids, Task

POOL = 3
"""Different tokens that an input is made of, where its positions allow them."""

N_LOOKED_AT = 500
"""Inputs of the task that show which tokens occur at each position."""


def out_of_distribution_inputs(task: Task, rng: np.random.Generator, n: int) -> Ids:
    """Inputs in the task's layout whose tokens are drawn independently, each input from a pool of a few.

    Every position keeps to the tokens that stand there in the task's own inputs; padding stands where it does in
    one of them. Repetitions, which are rare in many tasks, are the rule here. No token is determined by others.
    """
    seen = task.sample(np.random.default_rng(0), N_LOOKED_AT)
    allowed = np.zeros((task.n_ctx, len(task.vocab)), dtype=bool)
    allowed[np.arange(task.n_ctx), seen] = True
    padding = None if task.padding is None else task.vocab.index(task.padding)
    if padding is not None:
        is_padding = task.sample(rng, n) == padding
        allowed[:, padding] = False
    free = allowed[allowed.sum(axis=1) > 1].any(axis=0)
    score = rng.random((n, len(task.vocab))) * free
    in_pool = score >= np.sort(score, axis=1)[:, -min(POOL, len(task.vocab)), None]
    weights = rng.random((n, task.n_ctx, len(task.vocab))) * allowed
    found = np.where(in_pool[:, None], weights + allowed, weights).argmax(axis=2)
    return found if padding is None else np.where(is_padding, padding, found)
