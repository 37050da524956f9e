"""A labelled circuit with both of its programs compiled, and both in one model."""

import numpy as np

from lab.labelled.circuits import CIRCUITS, HARD
from lab.labelled.hidden_mechanisms import with_task_logits
from rasplens.compare.subject.vocabulary import Vocabulary, vocabulary_of
from rasplens.compile import CompiledModel, compile_program
from rasplens.model import Transformer, disguise
from rasplens.model.twins.side_by_side import side_by_side
from rasplens.tasks import Task


def sides(name: str) -> tuple[Task, CompiledModel, CompiledModel]:
    """The task of a circuit, its program and its alternative program; both have a BOS if one needs it."""
    circuit = {**CIRCUITS, **HARD}[name]
    task, programs = circuit.task(), (circuit.program(), circuit.alternative())

    def both(bos: str) -> list[CompiledModel]:
        return [compile_program(one, task.vocab, task.n_ctx, mask=task.visible, bos=bos) for one in programs]

    first, second = both("auto")
    if first.has_bos != second.has_bos:
        first, second = both(True)
    return task, first, second


def mixed(
    task: Task, first: CompiledModel, second: CompiledModel, shares: tuple[float, float]
) -> tuple[Transformer, Vocabulary]:
    """Both in one stream, with their shares of the logits; and the vocabulary of the mixture."""
    own = vocabulary_of(first, task)
    model = side_by_side(*(with_task_logits(one, task) for one in (first, second)), shares)
    return disguise(model, seed=3), Vocabulary(own.tokens, own.positions, np.arange(len(task.outputs)))
