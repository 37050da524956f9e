"""Which interventions pose a question that the task itself could pose.

Inside a model, an intervention makes states that no input makes. Of what happens then a program says something,
but a model that was trained on the task alone was never asked. So only such interventions count in which every
selector selects as many keys as it does on some input, every variable has a value where it always has one, and
every answer is one that the task has at its position.

A selector of the best among several keys selects one. But a model that never had to choose between several may
choose as it likes: whether there was a choice counts as well. And where all selected keys hold the same, on
every input, it may do with different ones what it likes: the compiled model then has a mixture, and no value.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.pairing.variables import own_variables
from rasplens.compile import Variable
from rasplens.compile.variable import nearest
from rasplens.model.hook_points import EMBEDDED, act_name, when
from rasplens.tasks.task import NO_ANSWER, NOT_ASKED

APART = 1.0
"""Attention scores of compiled heads are the same, or further apart than this."""


CHOICES = 3
"""None, one, or several keys to choose from."""


@dataclass(frozen=True, eq=False)
class Posable:
    """The selections and answers that occur in the compiled model on the task's inputs.

    Attributes:
        rows: By layer, head and relevant position of the model, which selections occur, as `selections` numbers
            them: `[selection]`.
        answers: Which answers occur, `[answer, code]`.
        levels: Without a BOS in the compiled model, which says from which score on a key can be selected, the
            lowest score of a selected key, as `rows`; empty with one.
        pure: The variables that the compiled model computes, where they always have a value.
    """

    rows: Mapping[tuple[int, int, int], np.ndarray]
    answers: Bool[np.ndarray, "answer code"]
    levels: Mapping[tuple[int, int, int], float]
    pure: "tuple[Pure, ...]"

    def mixtures(self, behind: str = EMBEDDED) -> "Mixtures":
        """Return a watch for mixed variables, for a run that is edited at a hook point or behind it."""
        return Mixtures([one for one in self.pure if when(one.variable.written_at) >= when(behind)])

    def are_posed(
        self,
        expected: Int[np.ndarray, "pair answer"],
        scores: Mapping[int, np.ndarray],
        mixed: Bool[np.ndarray, "*pair"],
    ) -> Bool[np.ndarray, " pair"]:
        """Whether answers and selections are such as the task has.

        Args:
            expected: The answers, as the task's codes; `NOT_ASKED` where the task asks for none.
            scores: By layer, the attention scores of the compiled model: `[pair, head, ctx, ctx]`.
            mixed: Whether a variable has no value where it always has one; see `mixtures`.
        """
        known = self.answers[np.arange(len(self.answers)), expected] & (expected >= 0)
        posed = (known | (expected == NOT_ASKED)).all(axis=1) & ~mixed
        for (layer, head, place), sizes in self.rows.items():
            posed &= sizes[selections(scores[layer][:, head, place], self.levels.get((layer, head, place)))]
        return np.asarray(posed)


@dataclass(frozen=True, eq=False)
class Pure:
    """A variable of the compiled model, where it always has a value.

    Attributes:
        variable: The variable.
        tolerance: How far it may be off.
        places: The positions of the model.
    """

    variable: Variable
    tolerance: float
    places: tuple[int, ...]

    def is_mixed(self, stream: Float[np.ndarray, "row ctx d_model"]) -> Bool[np.ndarray, "row place"]:
        """Where it has none: it lies between its values."""
        return nearest(self.variable, self.variable.read(stream[:, list(self.places)]))[1] > self.tolerance


class Mixtures:
    """Watches a run of the compiled model for variables that have no value.

    Attributes:
        hooks: What to run it with, behind those that edit it.
    """

    def __init__(self, pure: Sequence[Pure]) -> None:
        self._found: list[list[np.ndarray]] = [[] for _ in pure]
        self.hooks = [
            (one.variable.written_at, self._watch(one, found))
            for one, found in zip(pure, self._found, strict=True)
        ]

    @property
    def rows(self) -> Bool[np.ndarray, "*pair"]:
        """On which inputs there was one, in the order in which they were run; False if none was watched."""
        return np.asarray(np.logical_or.reduce([np.concatenate(found).any(axis=1) for found in self._found]))

    @staticmethod
    def _watch(one: Pure, found: list[np.ndarray]) -> Callable[[torch.Tensor, object], torch.Tensor]:
        def watch(stream: torch.Tensor, hook: object) -> torch.Tensor:
            found.append(one.is_mixed(stream.numpy()))
            return stream

        return watch


def selections(scores: Float[np.ndarray, "*batch ctx"], level: float | None = None) -> Int[np.ndarray, "*batch"]:
    """How many keys a compiled head selects, three times; and 1 more if one could be, 2 if several could.

    Keys that could be selected, but for a better one, are those that predicates hold for. The BOS stands right
    below all of them, or level with them where they are counted.

    Args:
        scores: Attention scores of some rows.
        level: Without a BOS, the lowest score of a key that is ever selected: where no key comes so high, no
            predicate holds.
    """
    selected = (scores > scores.max(axis=-1, keepdims=True) - APART).sum(axis=-1)
    keys, least = (scores[..., 1:], scores[..., :1]) if level is None else (scores, level)
    could_be = (keys > least - APART).sum(axis=-1)
    return np.asarray(CHOICES * selected + np.minimum(could_be, CHOICES - 1))


def posable(pairing: Pairing) -> Posable:
    """Return the selections and answers that occur in the compiled model on a pairing's inputs."""
    reference, n_answers = pairing.reference, len(pairing.task.loss_positions)
    rows, levels = {}, dict[tuple[int, int, int], float]()
    for (layer, head), positions in pairing.relevance.rows.items():
        scores = reference.whole(act_name("attn_scores", layer))
        for place in map(reference.at, positions):
            seen = np.zeros(CHOICES * (scores.shape[-1] + 1), dtype=bool)
            own = scores[:, head, place]
            if not pairing.compiled.has_bos:
                highest = own.max(axis=-1)
                levels[layer, head, place] = float(highest[np.isfinite(highest)].min(initial=np.inf))
            seen[selections(own, levels.get((layer, head, place)))] = True
            rows[layer, head, place] = seen
    asked = reference.answers()
    answers = np.zeros((n_answers, len(pairing.task.outputs)), dtype=bool)
    known = asked >= 0
    answers[np.nonzero(known)[1], asked[known]] = True
    return Posable(rows, answers, levels, tuple(_pure(pairing)))


def _pure(pairing: Pairing) -> Iterator[Pure]:
    """The variables that are computed, each where it has a value on all inputs that the program has answers on.

    A mean that no input has counts as none: the compiled model goes on with the nearest one that some input has.
    """
    reference = pairing.reference
    answered = (reference.answers() != NO_ANSWER).all(axis=1)
    for name, variable in own_variables(pairing.compiled).items():
        if variable.written_at != EMBEDDED:
            places = tuple(reference.at(position) for position in pairing.relevance.positions(name))
            one = Pure(variable, pairing.compiled.tolerance(variable), places)
            mixed = one.is_mixed(reference.whole(variable.written_at)[answered])
            yield replace(one, places=tuple(np.array(places)[~mixed.any(axis=0)].tolist()))
