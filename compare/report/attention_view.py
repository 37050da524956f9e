"""Attention, each compiled head beside the learned one it is matched with: for a report's viewer, or any input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.attention.active_heads import active_heads
from rasplens.compare.evidence.attention.kept_models import KeptModels, ModelPair, ShownSide, live_models
from rasplens.compare.report.sentences import table
from rasplens.compare.subject.studied_model import Head
from rasplens.compile.rasp import Value
from rasplens.errors import RaspLensError

N_INPUTS = 5
"""Inputs that the reader can choose among."""

WITHOUT_BOS = "Of compiled heads, what a BOS gets is left out, and the rest adds up to 1."

FULL = 255
"""The integer that stands for an attention weight of 1."""


@dataclass(frozen=True)
class HeadPair:
    """A compiled head beside a learned one.

    Attributes:
        compiled: The compiled head.
        variable: What it gathers.
        learned: The learned head.
        patterns: By side, the attention on each input, `[input, query, key]`; of the compiled head, without what a
            BOS gets.
    """

    compiled: Head
    variable: str
    learned: Head
    patterns: Mapping[ShownSide, np.ndarray]

    def to_dict(self) -> dict[str, Any]:
        """In JSON values, attention as integers from 0 to `FULL`."""
        title = f"{head_name(self.compiled)}, {self.variable} · {head_name(self.learned)}"
        sides: dict[str, Any] = {
            side: {"head": head, "patterns": np.rint(FULL * self.patterns[side]).astype(int).tolist()}
            for side, head in self.heads.items()
        }
        return {"title": title} | sides

    @property
    def heads(self) -> dict[ShownSide, Head]:
        """Both heads, by side."""
        return {"compiled": self.compiled, "learned": self.learned}


@dataclass(frozen=True, eq=False)
class AttentionView:
    """Patterns of attention on a few inputs.

    Attributes:
        positions: The name of each position.
        inputs: The tokens of each input.
        pairs: Each compiled head with its learned one.
        models: Both models, so that others can be shown; None where they are not kept.
    """

    positions: list[str]
    inputs: list[list[str]]
    pairs: list[HeadPair]
    models: KeptModels | None

    def labels(self, index: int) -> list[str]:
        """Each position of an input with its token, or only once where that is its name."""
        named = zip(self.positions, self.inputs[index], strict=True)
        return [name if name == token and not name.isdigit() else f"{name}: {token}" for name, token in named]

    def to_dict(self) -> dict[str, Any]:
        """In JSON values."""
        pairs = [pair.to_dict() for pair in self.pairs]
        models = self.models and self.models.to_dict()
        kept = {"positions": self.positions, "inputs": self.inputs, "pairs": pairs, "models": models}
        return {**kept, "note": WITHOUT_BOS}


def attention_view(comparison: Comparison) -> AttentionView | None:
    """The heads of a comparison on its first inputs; None for one that was loaded, or has no head to show."""
    pairing = comparison.pairing
    if pairing is None:
        return None
    matches = best_matches(comparison)
    pairs = []
    for active in active_heads(pairing):
        if active.head in matches:
            layer, index = learned = matches[active.head]
            patterns: dict[ShownSide, np.ndarray] = {
                "compiled": active.pattern[:N_INPUTS],
                "learned": pairing.learned.pattern(layer)[:N_INPUTS, index],
            }
            pairs.append(HeadPair(active.head, active.variable, learned, patterns))
    if not pairs:
        return None
    task = pairing.task
    inputs = [[task.token_names[i] for i in ids] for ids in pairing.ids[:N_INPUTS].tolist()]
    return AttentionView(list(task.positions), inputs, pairs, comparison.models)


def attention_on(comparison: Comparison, tokens: str | Sequence[Value]) -> AttentionView:
    """The heads of a comparison on one input.

    Args:
        comparison: One made in this session; or a loaded one, if its models were small enough to be stored.
        tokens: An input of the task, at all of its positions; as text, with spaces or commas between tokens.

    Raises:
        RaspLensError: If there are no models, or no heads to show; or the input has other tokens or another size.
    """
    matches = best_matches(comparison)
    if not matches:
        raise RaspLensError(
            "This comparison matches no heads, so none can be shown: it is of a part of a model, or no compiled "
            "head attends to anything that reaches an answer."
        )
    models, pairing = _models(comparison), comparison.pairing
    are_values = pairing is not None and not isinstance(tokens, str)
    ids = pairing.task.ids([list(tokens)]) if pairing and are_values else models.ids(tokens)
    pairs = [
        HeadPair(compiled, models.variables[compiled], learned, {
            "compiled": models.pattern("compiled", ids, compiled),
            "learned": models.pattern("learned", ids, learned),
        })
        for compiled, learned in matches.items()
    ]  # fmt: skip
    names = [models.tokens[i] for i in ids[0].tolist()]
    return AttentionView(list(models.positions), [names], pairs, comparison.models)


def _models(comparison: Comparison) -> ModelPair:
    """Both models, wherever they are.

    Raises:
        RaspLensError: If the comparison was loaded from a file without them.
    """
    if comparison.pairing is not None:
        return live_models(comparison.pairing)
    if comparison.models is None:
        raise RaspLensError(
            "The file of this comparison holds no models: they are too large, not only "
            "weights of ours, or two of their tokens are written alike. Call "
            "attention_figure(result, tokens) in the session that compares."
        )
    return comparison.models


def best_matches(comparison: Comparison) -> Mapping[Head, Head]:
    """For each compiled head the learned head that is matched with it, else the most similar one."""
    found = table(comparison, "attention")
    if found.empty:
        return {}
    ranked = found.sort_values(["matched", "similarity"], ascending=False)
    best = ranked.groupby(["compiled_layer", "compiled_head"])[["layer", "head"]].first()
    return {
        compiled: tuple(learned) for compiled, learned in zip(best.index, best.to_numpy().tolist(), strict=True)
    }


def head_name(head: Head) -> str:
    """A head as the field writes it: L0H1."""
    return "L{}H{}".format(*head)
