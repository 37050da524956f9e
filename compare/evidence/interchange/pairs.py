"""Pairs of inputs between which one variable of the program is interchanged, and what the program then answers.

For a pair (base, source), the interpreter runs the program on the base with the variable as it is on the source:
the counterfactual answers of a model that implements the program.

Source: Geiger et al. 2021, "Causal Abstractions of Neural Networks".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.evidence.subspaces.representations import determines, own_variables, varies
from rasplens.compare.models.pairing import Pairing
from rasplens.compile import UndefinedValue, run
from rasplens.model import random_streams

EMBEDDED = "blocks.0.hook_resid_pre"
"""Where variables are that the embedding holds."""

OFTEN = 5
"""A variable can be seen to follow from a token only if each token occurs this often, on average."""


@dataclass(frozen=True, eq=False)
class InterchangePairs:
    """Pairs of inputs on which one variable is interchanged, and what the program says of them.

    Every other attempt takes the variable from the source at all positions, the others at a single one; those on
    which the program has no answer, or the same one, are left out.

    Attributes:
        variable: Its name.
        base: Inputs, by their place in the pairing.
        source: Others.
        intervened: The intervention mask: where the variable is taken from the source, `[pair, pos]`.
        expected: The program's answers then, as the task's codes.
        changes: Where they differ from those on the base itself.
    """

    variable: str
    base: Int[np.ndarray, " pair"]
    source: Int[np.ndarray, " pair"]
    intervened: Bool[np.ndarray, "pair pos"]
    expected: Int[np.ndarray, "pair answer"]
    changes: Bool[np.ndarray, "pair answer"]

    @property
    def positions(self) -> list[int]:
        """The positions at which the variable is taken from some source."""
        return np.flatnonzero(self.intervened.any(axis=0)).tolist()


def interchangeable_positions(pairing: Pairing, variable: str) -> list[int]:
    """The positions at which a variable is causally relevant, varies, and can be set without its token."""
    codes = pairing.codes[variable]
    return [
        position
        for position in pairing.relevant_positions(variable)
        if varies(codes[:, position]) and not _is_fixed_by_the_token(pairing, variable, position)
    ]


def interchange_pairs(
    pairing: Pairing, variable: str, positions: Sequence[int], seed: int
) -> InterchangePairs | None:
    """Random pairs of a pairing's inputs on which the program's answer depends on a variable.

    Args:
        pairing: Whose inputs.
        variable: Its name.
        positions: Where it may be taken from the source, see `interchangeable_positions`.
        seed: Of the pairs.

    Returns:
        The pairs; None if too few can be found.
    """
    config, rng = pairing.config, random_streams.rng(seed, "interchange pairs")
    codes = pairing.codes[variable]
    found = []
    for attempt in range(config.pairs_tried if len(positions) else 0):
        base, source = rng.choice(pairing.n_inputs, 2, replace=False)
        intervened = np.zeros(codes.shape[1], dtype=bool)
        intervened[positions if attempt % 2 else rng.choice(positions)] = True
        if (codes[base] == codes[source])[intervened].all():
            continue
        expected = counterfactual(pairing, variable, int(base), int(source), intervened)
        if expected is not None and (expected != pairing.program_answers(int(base))).any():
            found.append((base, source, intervened, expected, expected != pairing.program_answers(int(base))))
        if len(found) == config.interchange_pairs:
            break
    if len(found) < config.least_pairs:
        return None
    return InterchangePairs(variable, *(np.stack(part) for part in zip(*found, strict=True)))


def _is_fixed_by_the_token(pairing: Pairing, variable: str, position: int) -> bool:
    """Whether variable and token at a position determine each other, as "the first token" does at position 0.

    Then no input has one without the other, and neither can be interchanged alone.
    """
    parts = [part for part in (pairing.fitting, pairing.out_of_distribution) if part is not None] or [pairing]
    tokens = np.concatenate([part.ids[:, position] for part in parts])
    codes = np.concatenate([part.codes[variable][:, position] for part in parts])
    often = len(np.unique(tokens)) * OFTEN <= len(tokens)
    return often and determines(tokens, codes) and determines(codes, tokens)


def counterfactual(
    pairing: Pairing, variable: str, base: int, source: int, intervened: Bool[np.ndarray, " pos"]
) -> Int[np.ndarray, " answer"] | None:
    """The program's answers on one input with a variable as it is on another, at some positions.

    None where the program has none, or one that the task does not know.
    """
    task, codes = pairing.task, pairing.codes[variable]
    values = (*pairing.compiled.variables[variable].values, None)
    chosen = [values[code] for code in np.where(intervened, codes[source], codes[base])]
    tokens = task.sequences(pairing.ids[base : base + 1])[0]
    try:
        answers = run(pairing.compiled.program, tokens, mask=task.visible, set={variable: chosen})
    except UndefinedValue:
        return None
    known = np.array([task.answer_code(answers[position]) for position in task.loss_positions])
    return None if (known < 0).any() else known


def draw_pairs(pairing: Pairing, seed: int) -> list[tuple[InterchangePairs, InterchangePairs]]:
    """For every variable that can be tested, pairs to choose a site on and others to score on."""
    drawn = []
    for variable in intermediate_variables(pairing):
        positions = interchangeable_positions(pairing, variable)
        chosen, scored = (
            None if part is None else interchange_pairs(part, variable, positions, seed)
            for part in (pairing.fitting, pairing)
        )
        if chosen is not None and scored is not None:
            drawn.append((chosen, scored))
    return drawn


def intermediate_variables(pairing: Pairing) -> list[str]:
    """The variables between input and output: with directions of their own, neither input nor result.

    Taking the input, what the embedding says of it, or the result from elsewhere says nothing about how the one
    becomes the other.
    """
    return [
        name
        for name, variable in own_variables(pairing).items()
        if variable.written_at != EMBEDDED and name != pairing.compiled.output
    ]
