"""What the program answers, and what its variables are, with other variables taken from other inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int

from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.interchange import taken
from rasplens.compare.subject.studied_model import FwdHook
from rasplens.compile.variable import nearest
from rasplens.model.hook_points import act_name, activation_of, layer_of
from rasplens.model.interventions import Project, torch_hooks
from rasplens.tasks.task import NOT_ASKED


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


def sayable(
    expected: Int[np.ndarray, "pair answer"], columns: Int[np.ndarray, " code"] | None
) -> Int[np.ndarray, "pair answer"]:
    """Return what is expected, without the answers that a model has no logit for: of those it is not asked.

    Such as None, which a compiled model says by having no logit that is large.

    Args:
        expected: The answers, as the task's codes.
        columns: By code, the model's logit; negative where it has none. None if it answers with numbers.
    """
    if columns is None:
        return expected
    return np.where((expected >= 0) & (columns[np.maximum(expected, 0)] >= 0), expected, NOT_ASKED)


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
