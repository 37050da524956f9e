"""A compiled model on a sample, as a search sees it."""

import numpy as np

from rasplens.compare.explaining.known import Inputs
from rasplens.compare.explaining.sample import Sample
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.tasks import compile_for, task_from_program


def sample_of(program, vocab="abc", n=4, causal=False, n_inputs=60, ids=None):
    """A program's own compiled model on some inputs: what is intervened on, and what programs see."""
    task = task_from_program(program, vocab, n, causal=causal)
    rng = np.random.default_rng(0)
    ids = task.sample(rng, n_inputs) if ids is None else ids
    studied = as_studied_model(compile_for(task, program), task, ids)
    return Sample(studied, [rng.permutation(len(ids)) for _ in range(2)]), Inputs(task, ids)
