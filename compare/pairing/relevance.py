"""Causally relevant positions: an activation of another input or position changes an answer's logits there.

Zeroing would not do: the zero of a head may be just what it writes where it has nothing to say.
Found by trying, on a few inputs, with every position at once in a batch.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from rasplens.compare.pairing.inputs import balance
from rasplens.compare.subject.studied_model import Head, StudiedModel
from rasplens.compile import Variable
from rasplens.model.hook_points import act_name, activation_of, layer_of
from rasplens.model.interventions import Project, Subspace, torch_hooks
from rasplens.tasks.task import Ids

CHANGE = 1e-3
"""Smallest change of a logit that counts."""

ROUNDS = 4
"""Number of batches in which inputs are tried: most positions are found with the first."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """The causally relevant positions of the compiled model, each found when it is first asked for.

    Attributes:
        variables: The compiled model's, by name.
        reference: That model, on the inputs that are tried.
        n_inputs: How many of them.
    """

    variables: Mapping[str, Variable]
    reference: StudiedModel
    n_inputs: int

    @cached_property
    def rows(self) -> dict[Head, list[int]]:
        """By head, the positions at which what it writes is causally relevant."""
        return relevant_rows(self.reference, self.n_inputs)

    def positions(self, variable: str) -> list[int]:
        """The positions at which a variable is causally relevant."""
        if variable not in self._positions:
            one = self.variables[variable]
            self._positions[variable] = relevant_positions(self.reference, one, self.n_inputs)
        return self._positions[variable]

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        return {}


def relevant_rows(studied: StudiedModel, n_inputs: int) -> dict[Head, list[int]]:
    """For each head, the causally relevant positions of what it writes."""
    found = {}
    for layer, head in studied.heads:
        found[layer, head] = _relevant_positions(
            studied, n_inputs, act_name("z", layer), studied.heads_subspace([head])
        )
    return found


def relevant_positions(studied: StudiedModel, variable: Variable, n_inputs: int) -> list[int]:
    """The positions at which a compiled variable is causally relevant."""
    return _relevant_positions(studied, n_inputs, variable.written_at, variable.subspace)


def _relevant_positions(studied: StudiedModel, n_inputs: int, point: str, subspace: Subspace) -> list[int]:
    """The task's positions at which a part of an activation reaches an answer.

    What the first inputs show is not asked of the others.
    """
    found: set[int] = set()
    for few in np.array_split(_telling(studied, n_inputs), ROUNDS):
        asked = [position for position in range(studied.n_pos) if position not in found]
        if len(few) > 1 and asked:
            found |= _reaching(studied.on(few), point, subspace, asked)
    return sorted(found)


def _telling(studied: StudiedModel, n_inputs: int) -> Ids:
    """Some of the inputs: the first ones, and where answers are rare as many with the rarest, in turns."""
    answers = studied.answers()
    if balance(answers) is None:
        return studied.ids[:n_inputs]
    counts = np.bincount(answers[answers >= 0], minlength=len(studied.task.outputs))
    rarest = np.where(answers >= 0, counts[answers], answers.size).min(axis=1)
    by_rarity = np.argsort(rarest, kind="stable")
    rows = np.stack([np.arange(studied.n_inputs), by_rarity], axis=1).ravel()
    _, first = np.unique(rows, return_index=True)
    return studied.ids[rows[np.sort(first)][:n_inputs]]


def _reaching(studied: StudiedModel, point: str, subspace: Subspace, positions: Sequence[int]) -> set[int]:
    """Those of some positions at which a part of an activation reaches an answer on these inputs."""
    n, clean, whole = (
        studied.n_inputs,
        studied.clean_logits,
        studied.whole(point).reshape(studied.n_inputs, studied.tokens.shape[1], -1),
    )

    def change(groups: Sequence[Sequence[int]], dimension: int) -> Float[np.ndarray, "group answer"]:
        """How much the logits change when each group of positions has the part of the next input or position."""
        chosen = sorted(set(itertools.chain(*groups)))
        others = np.roll(whole, 1, axis=dimension)[:, [studied.at(position) for position in chosen]]
        where = np.array([[position in group for position in chosen] for group in groups])
        there = dict.fromkeys(map(studied.at, chosen), subspace)
        hooks = torch_hooks([Project(point, there, np.tile(others, (len(groups), 1, 1)), where.repeat(n, axis=0))])
        logits = studied.logits(hooks, np.tile(np.arange(n), len(groups)))
        changed = np.abs(logits.reshape(len(groups), *clean.shape) - clean).max(axis=3)
        return (changed * studied.asked).max(axis=1)

    def reached(groups: Sequence[Sequence[int]]) -> Float[np.ndarray, "group answer"]:
        return np.maximum(change(groups, 0), change(groups, 1))

    if layer_of(point) == studied.n_layers - 1 and activation_of(point) != "resid_pre":
        # Behind the last attention a position reaches its own answer and no other: all are tried at once.
        is_relevant = reached([positions])[0] > CHANGE
        answers = zip(studied.task.loss_positions, is_relevant, strict=True)
        return {position for position, relevant in answers if relevant}
    is_relevant = reached([[position] for position in positions]).max(axis=1) > CHANGE
    return {position for position, relevant in zip(positions, is_relevant, strict=True) if relevant}
