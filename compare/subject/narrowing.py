"""The part of a large vocabulary that a task can reach.

A language model has fifty thousand tokens, a task a few dozen. Nothing that the task asks depends on the
embeddings of the others, nor on their logits; but embedding and unembedding would take half of the time, and most
of the memory.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Int

from rasplens.compare.subject.vocabulary import Vocabulary
from rasplens.errors import RaspLensError
from rasplens.model import Transformer
from rasplens.tasks import Task
from rasplens.tasks.task import Ids


def narrowed(model: Transformer, task: Task, vocabulary: Vocabulary) -> tuple[Transformer, Vocabulary]:
    """A model without the tokens and the logits that a task has no use for, and its vocabulary for the task.

    Answers are those of the model itself. Where they are read in another way than by the largest logit of a
    column, all stays as it is.

    Raises:
        RaspLensError: If the id of a token hangs on what stands beside it.
    """
    narrow, logits = narrowed_logits(vocabulary)
    if logits is None:
        return model, vocabulary
    everywhere = np.tile(np.arange(len(task.vocab))[:, None], task.n_ctx)
    used = np.unique(vocabulary.tokens(everywhere))
    weights = dict(model.weights)
    weights["embed.W_E"] = weights["embed.W_E"][used]
    weights["unembed.W_U"] = weights["unembed.W_U"][:, logits]
    if "unembed.b_U" in weights:
        weights["unembed.b_U"] = weights["unembed.b_U"][logits]
    config = replace(model.config, d_vocab=len(used), d_vocab_out=len(logits))

    def tokens(ids: Ids) -> np.ndarray:
        wide = vocabulary.tokens(ids)
        places = np.searchsorted(used, wide).clip(max=len(used) - 1)
        if (used[places] != wide).any():
            raise RaspLensError("A vocabulary must give a token the same id in every context.")
        return places

    return Transformer(config, weights, model.mask), replace(narrow, tokens=tokens)


def narrowed_logits(vocabulary: Vocabulary) -> tuple[Vocabulary, Int[np.ndarray, " logit"] | None]:
    """A vocabulary of a model of which no other logits are read than those of answers, and these logits.

    Where answers are read in another way than by the largest logit of a column, all logits are read: None.
    """
    if vocabulary.decode is not None or vocabulary.columns is None:
        return vocabulary, None
    can_say = vocabulary.columns >= 0
    columns = np.full(len(vocabulary.columns), -1)
    columns[can_say] = np.arange(can_say.sum())
    return replace(vocabulary, columns=columns), vocabulary.columns[can_say]
