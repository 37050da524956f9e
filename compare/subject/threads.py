"""How many threads a comparison takes: one where its models are small."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from rasplens.model import transformer_of

LEAST_WIDTH = 128
"""Smallest width of the residual stream for which PyTorch gets several threads.

Below it, an operation takes less time than the synchronisation of threads. OpenMP threads wait by spinning, so
under load they take processors from the thread that they wait for. `lab/threads.py` measures it.
"""


@contextmanager
def few_threads(*models: Any) -> Iterator[None]:
    """Run PyTorch on one thread, unless one of the models is wide; BLAS on one thread always.

    What calls the algebra of many small matrices would wait in each call for all threads.
    """
    before = torch.get_num_threads()
    is_small = all(_width(model) < LEAST_WIDTH for model in models)
    torch.set_num_threads(1 if is_small else before)
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


def _width(model: object) -> int:
    """Return the width of a model's residual stream; 0 for what is no model."""
    transformer = transformer_of(model)
    config = getattr(model, "cfg", None) if transformer is None else transformer.config
    return int(getattr(config, "d_model", 0))
