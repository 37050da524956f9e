"""Pairs of inputs between which one variable of the program is interchanged, and what the program then answers.

For a pair (base, source), the compiled model runs on the base with the variable as it is on the source: the
counterfactual answers of any model that implements the program. Only such count as the task itself could ask for.

Source: Geiger et al. 2021, "Causal Abstractions of Neural Networks".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int

from rasplens.compare.claims.posable import posable
from rasplens.compare.pairing.inputs import balanced
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.study import Study
from rasplens.compare.subject.interchange import taken
from rasplens.compare.subject.studied_model import FwdHook
from rasplens.compile.variable import nearest
from rasplens.model import random_streams
from rasplens.model.hook_points import act_name, activation_of, layer_of
from rasplens.model.interventions import Project, torch_hooks
from rasplens.tasks.task import NOT_ASKED


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
    def stays(self) -> Bool[np.ndarray, "pair answer"]:
        """Where answers that are asked for are the same as on the base."""
        return ~self.changes & (self.expected != NOT_ASKED)

    @property
    def positions(self) -> list[int]:
        """The positions at which the variable is taken from some source."""
        return np.flatnonzero(self.intervened.any(axis=0)).tolist()

    def of(self, rows: Bool[np.ndarray, " pair"] | slice) -> "InterchangePairs":
        """Some of the pairs."""
        parts = self.base, self.source, self.intervened, self.expected, self.changes
        return InterchangePairs(self.variable, *(part[rows] for part in parts))


@dataclass(frozen=True, eq=False)
class Setting:
    """A variable that takes its value from other inputs.

    Attributes:
        variable: Its name.
        source: The inputs, by their place in the pairing.
        intervened: Where it does: `[pair, pos]`.
    """

    variable: str
    source: Int[np.ndarray, " pair"]
    intervened: Bool[np.ndarray, "pair pos"]


def interchange_pairs(
    pairing: Pairing, variable: str, positions: Sequence[int], seed: int
) -> InterchangePairs | None:
    """Random pairs of a pairing's inputs on which the program's answer depends on a variable.

    Args:
        pairing: Whose inputs; those on which the model answers as the program does.
        variable: Its name.
        positions: Where it may be taken from the source, see `Study.interchangeable_positions`.
        seed: Of the pairs.

    Returns:
        The pairs; None if too few can be found.
    """
    config, rng = pairing.config, random_streams.rng(seed, "interchange pairs")
    codes, answers, posed = pairing.codes[variable], pairing.reference.answers(), posable(pairing)
    inputs, n = np.flatnonzero(pairing.agrees), config.interchange_pairs
    written_at = pairing.compiled.variables[variable].written_at
    found: list[tuple[np.ndarray, ...]] = []
    tried = enough = 0
    while len(inputs) > 1 and len(positions) and tried < config.pairs_tried and enough < n:
        base, source = inputs[balanced(pairing.balance, inputs, n, rng)], rng.choice(inputs, n)
        intervened = np.zeros((n, codes.shape[1]), dtype=bool)
        intervened[::2, positions] = True
        intervened[np.arange(1, n, 2), rng.choice(positions, len(range(1, n, 2)))] = True
        setting, mixtures = Setting(variable, source, intervened), posed.mixtures(behind=written_at)
        expected, scores = counterfactual(pairing, base, setting, watching=mixtures.hooks)
        is_posed = posed.are_posed(expected, scores, mixtures.rows)
        expected = sayable(pairing, expected)
        changes = (expected != answers[base]) & (expected != NOT_ASKED)
        asked = is_posed & changes.any(axis=1)
        found.append(tuple(part[asked] for part in (base, source, intervened, expected, changes)))
        tried += n
        enough += int(asked.sum())
    if enough < config.least_pairs:
        return None
    return InterchangePairs(variable, *(np.concatenate(part)[:n] for part in zip(*found, strict=True)))


def sayable(pairing: Pairing, expected: Int[np.ndarray, "pair answer"]) -> Int[np.ndarray, "pair answer"]:
    """Return the expected answers, with `NOT_ASKED` where the learned model has no logit for one.

    Such as None, which a compiled model says by having no logit that is large.
    """
    columns = pairing.learned.vocabulary.columns
    if columns is None:
        return expected
    return np.where((expected >= 0) & (columns[expected] >= 0), expected, NOT_ASKED)


def counterfactual(
    pairing: Pairing, base: Int[np.ndarray, " pair"], *settings: Setting, watching: Sequence[FwdHook] = ()
) -> tuple[Int[np.ndarray, "pair answer"], dict[int, np.ndarray]]:
    """The program's answers on inputs with variables as they are on others, at some positions.

    The compiled model gives them, with each variable's own directions taken from its source where it is written;
    `run(..., set=...)` says the same where every variable has a value.

    Args:
        pairing: Whose inputs.
        base: The inputs, by their place there.
        settings: What is taken from others.
        watching: More hooks, at or behind the first of these.

    Returns:
        The answers as the task's codes, and by layer with heads the attention scores then,
        `[pair, head, ctx, ctx]`.
    """
    reference, set_to = pairing.reference, [_set(pairing, setting) for setting in settings]
    first, layers = min(_first_attending(one.point) for one in set_to), reference.attending_layers
    scores = {layer: reference.whole(act_name("attn_scores", layer))[base] for layer in layers if layer < first}

    def keep(layer: int) -> Callable[[torch.Tensor, object], torch.Tensor]:
        def function(of_layer: torch.Tensor, hook: object) -> torch.Tensor:
            scores[layer] = of_layer.numpy()
            return of_layer

        return function

    watched = [(act_name("attn_scores", layer), keep(layer)) for layer in layers if layer >= first]
    logits = reference.logits([*torch_hooks(set_to), *watched, *watching], base)
    return reference.codes(logits, base), scores


def moves(pairing: Pairing, pairs: InterchangePairs, variable: str) -> bool:
    """Whether a variable changes in the compiled model, on any pair, when that of the pairs is interchanged."""
    other = pairing.compiled.variables[variable]
    before = nearest(other, other.read(pairing.reference.activation(other.written_at, pairs.base)))[0]
    setting = Setting(pairs.variable, pairs.source, pairs.intervened)
    return bool((before != codes_when_set(pairing, pairs.base, setting, variable)).any())


def codes_when_set(
    pairing: Pairing, base: Int[np.ndarray, " pair"], setting: Setting, variable: str
) -> Int[np.ndarray, "pair pos"]:
    """A variable in the compiled model, on inputs on which another one is set; codes as in `pairing.codes`."""
    reference, other = pairing.reference, pairing.compiled.variables[variable]
    found: list[np.ndarray] = []

    def watch(stream: torch.Tensor, hook: object) -> torch.Tensor:
        found.append(stream[:, reference.places].numpy())
        return stream

    reference.logits([*torch_hooks([_set(pairing, setting)]), (other.written_at, watch)], base)
    return nearest(other, other.read(np.concatenate(found)))[0]


def _first_attending(point: str) -> int:
    """The first layer whose attention comes behind a hook point of the residual stream."""
    return layer_of(point) + (activation_of(point) != "resid_pre")


def _set(pairing: Pairing, setting: Setting) -> Project:
    """Return the intervention on the compiled model that sets a variable where it is written."""
    variable = pairing.compiled.variables[setting.variable]
    positions = np.flatnonzero(setting.intervened.any(axis=0)).tolist()
    own = dict.fromkeys(positions, variable.subspace)
    return taken(pairing.reference, setting.source, setting.intervened, variable.written_at, own)


def draw_pairs(study: Study, seed: int) -> list[tuple[InterchangePairs, InterchangePairs]]:
    """For every variable that can be tested, pairs to choose a site on and others to score on."""
    drawn = []
    for name, positions in study.variables.items():
        chosen, scored = (interchange_pairs(part, name, positions, seed) for part in (study.fitting, study.scored))
        if chosen is not None and scored is not None:
            drawn.append((chosen, scored))
    return drawn
