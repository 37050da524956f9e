"""Protocols that methods of circuit discovery are asked by, and how their answers are scored.

Results of different papers differ more by these choices than by method, so all of them are data.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rasplens.errors import RaspLensError

POINTS = 50
"""Points of integrated gradients. With the published 5, heads with hard attention get a score of zero."""

FLOOR = 1e-6
"""Scores below this share of the largest count as zero: smaller ones may be rounding."""

ASKED = {
    "ablation": ("zero", "mean", "resample"),
    "metric": ("kl", "loss", "logit_difference", "l2"),
    "corruption": ("task", "one_token"),
    "answers": ("mean", "sum"),
}
"""The values that fields of a protocol may have."""

SCORED = {
    "unscored": ("last", "out"),
    "embeddings": ("apart", "one", "out"),
    "heads": ("qkv", "whole"),
    "circuit": ("seen", "program"),
    "curve": ("whole", "stairs"),
}
"""The values that fields of a scoring may have."""


def _check_choices(asked: object, choices: Mapping[str, Collection[str]]) -> None:
    """Raises if a field has a value that it cannot have."""
    for name, known in choices.items():
        if getattr(asked, name) not in known:
            raise RaspLensError(
                f"{name} of a {type(asked).__name__} must be one of {', '.join(known)}; got "
                f"{getattr(asked, name)!r}."
            )


@dataclass(frozen=True)
class Protocol:
    """How edges are ablated, and which damage counts: all that a method is asked.

    Attributes:
        ablation: What an ablated edge carries: nothing (`"zero"`), the mean over inputs, or what its sender
            writes on another input (`"resample"`).
        metric: `"kl"`, of the patched answers from the clean ones, in nats; `"loss"`, cross-entropy of the right
            answers, in nats; `"logit_difference"`, by which the logit of the right answer exceeds that of the
            other input's answer, its loss; `"l2"`, the squared distance of the logits.
        answers: Whether the damage to a pair is the mean over its answers, or their sum.
        corruption: The other inputs: any of the task's, or the same input with one token changed (`"one_token"`).
        absolute: Whether edges are ranked by the size of their effect, or by the effect with its sign. ACDC prunes
            by it; the scores of other methods stay the same.
        points: How many points of integrated gradients there are between two inputs, or two activations.
        n_pairs: Pairs of inputs.
        seed: Of pairs and methods.
    """

    ablation: str = "resample"
    metric: str = "kl"
    answers: str = "mean"
    corruption: str = "task"
    absolute: bool = True
    points: int = POINTS
    n_pairs: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        _check_choices(self, ASKED)
        if self.n_pairs < 2:
            raise RaspLensError(f"n_pairs of a Protocol must be at least 2; got {self.n_pairs}.")
        if self.points < 1:
            raise RaspLensError(f"points of a Protocol must be at least 1; got {self.points}.")


@dataclass(frozen=True)
class Scoring:
    """How a method's scores are counted; methods know nothing of it.

    Attributes:
        embeddings: Whether tokens and positions are two senders (`"apart"`), one whose edges straight into the
            logits do not count (`"one"`), with the largest of their scores, or none (`"out"`).
        logits: Whether edges into the logits are scored.
        heads: Whether a head's queries, keys and values are scored apart (`"qkv"`), or an edge into any of them is
            one edge with the largest of their scores (`"whole"`).
        circuit: Which edges are to be found: those whose ablation the model can notice (`"seen"`), or all along
            which the program passes anything, also what is the same on all inputs (`"program"`).
        curve: The ROC curve through the circuits at all thresholds (`"whole"`), or stairs below those at some
            thresholds that were fixed before (`"stairs"`), see `areas.STAIRS`.
        unscored: Edges that a method gives no score come last (`"last"`), or are left out (`"out"`).
        floor: The share of the largest score below which scores count as zero, and tie: such differences are
            rounding, or gradients of attention that is saturated. 0 ranks all of them.
    """

    embeddings: str = "apart"
    logits: bool = True
    heads: str = "qkv"
    circuit: str = "seen"
    curve: str = "whole"
    unscored: str = "last"
    floor: float = FLOOR

    def __post_init__(self) -> None:
        _check_choices(self, SCORED)
        if not 0 <= self.floor < 1:
            raise RaspLensError(
                f"floor of a Scoring must be a share of the largest score, in [0, 1); got {self.floor}."
            )


@dataclass(frozen=True)
class Setting:
    """A protocol, and how the scores of methods that were asked by it are counted."""

    protocol: Protocol = Protocol()
    scoring: Scoring = Scoring()
