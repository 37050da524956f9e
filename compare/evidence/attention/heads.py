"""The attention axis: which learned head attends like which compiled head.

Attention is compared on the compiled head's active query rows: where it selects something, and what it writes
reaches an answer. A row's similarity is 1 minus the Jensen-Shannon divergence in bits, in [0, 1]. Much of it comes
from position alone; so it stands beside the same score with every learned row held against the compiled row of
*another* input, and the difference is its input dependence.

On inactive query rows the compiled head selects nothing, and there is no similarity. By similarity alone, a head
that attends there too could not be told from one that attends only where it should. So there is a second score,
over inputs. Concordance (Lin 1989) says how closely the attention between two positions rises and falls with the
compiled head's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment
from scipy.special import rel_entr

from rasplens.compare.evidence.attention.active_heads import SELECTS, ActiveHead, Rows, active_heads
from rasplens.compare.evidence.attention.concordance import concordance, moments
from rasplens.compare.evidence.derangements import derangement
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head, StudiedModel
from rasplens.model import random_streams

SPLIT_GAIN = 0.02
"""Gain in similarity of two heads together, over the better one alone, from which a head counts as split."""


COLUMNS = (
    "compiled_layer", "compiled_head", "variable", "layer", "head", "rows", "similarity", "shuffled",
    "input_dependence", "concordance", "p", "untrained",
)  # fmt: skip
"""The columns of the table of pairs of heads."""


@dataclass(frozen=True, eq=False)
class ByInput:
    """The similarity of a compiled head and its match, input by input.

    Attributes:
        similarity: The mean over rows; NaN where the compiled head has no active query row.
        uniform: The same of a head that attends to everything it may see alike.
        moments: What the concordance is made of, see `rasplens.compare.evidence.attention.concordance`.
    """

    similarity: Float[np.ndarray, " input"]
    uniform: Float[np.ndarray, " input"]
    moments: Float[np.ndarray, "3 input"]


@dataclass(frozen=True, eq=False)
class HeadSimilarities:
    """The similarity of compiled and learned heads, and which are matched.

    Attributes:
        table: One row per pair of a compiled head with active query rows and a learned head: columns `COLUMNS`.
            `shuffled` is the similarity with other inputs' compiled rows, `input_dependence` what is above that,
            `concordance` how closely attention changes over inputs with the compiled head's (1: alike, 0: not at
            all; NaN where that attends alike on all inputs), and `matched` whether the two are joined by the
            one-to-one assignment with the most similarity and concordance. For matched pairs, `p` is the share of
            `attention_permutations` shuffles that reach the similarity, and `untrained` that of the most similar
            head of an untrained model; NaN for others.
        by_input: The same for every matched compiled head on each input.
    """

    table: pd.DataFrame
    by_input: dict[Head, ByInput]


def head_similarities(pairing: Pairing, seed: int) -> HeadSimilarities:
    """The similarity of every compiled head with every learned head."""
    config, rng = pairing.config, random_streams.rng(seed, "attention heads")
    shuffles = [derangement(pairing.n_inputs, rng) for _ in range(config.attention_permutations)]
    active = active_heads(pairing)
    frame = pd.DataFrame(
        [
            _compare(one, pairing.learned, head, shuffles[: config.attention_shuffles])
            for one in active
            for head in pairing.learned.heads
        ],
        columns=list(COLUMNS),
    )
    joined = _assignment(frame)
    keys = list(zip(frame["compiled_layer"], frame["compiled_head"], frame["layer"], frame["head"], strict=True))
    frame["matched"] = [joined.get(key[:2]) == key[2:] for key in keys]
    by_input = {}
    for one in active:
        if one.head not in joined:
            continue
        layer, index = joined[one.head]
        learned = pairing.learned.pattern(layer)[:, index]
        by_input[one.head] = ByInput(
            similarity=_by_input(one, learned),
            uniform=_by_input(one, _uniform(pairing)),
            moments=moments(one.attention, learned, one.active_rows, one.inactive_rows),
        )
        row = keys.index((*one.head, *joined[one.head]))
        same = frame.loc[row, "similarity"]
        reached = sum(_shuffled(one, pairing.learned, joined[one.head], order) >= same for order in shuffles)
        frame.loc[row, "p"] = (1 + reached) / (1 + config.attention_permutations)
        frame.loc[row, "untrained"] = max(
            _mean_similarity(one.pattern, pairing.untrained.pattern(layer)[:, index], one.active_rows)
            for layer, index in pairing.untrained.heads
        )
    return HeadSimilarities(frame, by_input)


def split_heads(pairing: Pairing, found: HeadSimilarities) -> pd.DataFrame:
    """Compiled heads whose work several learned heads share, and learned heads that do the work of several.

    Returns:
        Columns kind ("split": the mean of two heads of a layer attends more like the compiled head than the
        better one alone; "merged": a head is the most similar one for several compiled heads), compiled, learned,
        gain (of similarity; NaN for merged ones).
    """
    rows: list[tuple[str, str, str, float]] = []
    best = found.table.loc[found.table.groupby(["compiled_layer", "compiled_head"])["similarity"].idxmax()]
    for (layer, head), group in best.groupby(["layer", "head"]):
        if len(group) > 1:
            rows.append(("merged", ", ".join(group["variable"]), f"L{layer}H{head}", float("nan")))
    for one in active_heads(pairing) if len(best) else ():  # a model without heads attends like nothing
        own = best[(best["compiled_layer"] == one.head[0]) & (best["compiled_head"] == one.head[1])].iloc[0]
        layer, head = int(own["layer"]), int(own["head"])
        patterns = pairing.learned.pattern(layer)
        for other in pairing.learned.heads_of(layer):
            both = (patterns[:, head] + patterns[:, other]) / 2
            gain = _mean_similarity(one.pattern, both, one.active_rows) - own["similarity"]
            if other != head and gain > SPLIT_GAIN:
                rows.append(("split", one.variable, f"L{layer}H{head}+{other}", gain))
    return pd.DataFrame(rows, columns=["kind", "compiled", "learned", "gain"])


def similarity(
    first: Float[np.ndarray, "row key"], second: Float[np.ndarray, "row key"]
) -> Float[np.ndarray, " row"]:
    """1 minus the Jensen-Shannon divergence in bits of each pair of rows, in [0, 1]."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    middle = (first + second) / 2
    divergence = (rel_entr(first, middle) + rel_entr(second, middle)).sum(axis=-1) / (2 * np.log(2))
    return 1 - np.clip(divergence, 0, 1)  # rounding can leave it just outside


def _compare(
    active: ActiveHead, studied: StudiedModel, head: Head, shuffles: Sequence[np.ndarray]
) -> dict[str, object]:
    layer, index = head
    learned = studied.pattern(layer)[:, index]
    same = _mean_similarity(active.pattern, learned, active.active_rows)
    other = float(np.mean([_shuffled(active, studied, head, order) for order in shuffles])) if shuffles else np.nan
    return {
        "compiled_layer": active.head[0],
        "compiled_head": active.head[1],
        "variable": active.variable,
        "layer": layer,
        "head": index,
        "rows": int(active.active_rows.sum()),
        "similarity": same,
        "shuffled": other,
        "input_dependence": same - other,
        "concordance": float(
            concordance(moments(active.attention, learned, active.active_rows, active.inactive_rows).sum(axis=1))
        ),
        "p": np.nan,
        "untrained": np.nan,
    }


def _shuffled(active: ActiveHead, studied: StudiedModel, head: Head, order: np.ndarray) -> float:
    """The similarity with the compiled rows of other inputs."""
    learned = studied.pattern(head[0])[:, head[1]]
    return _mean_similarity(active.pattern[order], learned, active.active_rows[order])


def _uniform(pairing: Pairing) -> Rows:
    """The rows of a head that attends to all that the task lets a position see, alike."""
    visible = pairing.task.visible
    rows = visible / np.maximum(1, visible.sum(axis=1, keepdims=True))
    return np.broadcast_to(rows, (pairing.n_inputs, *rows.shape))


def _by_input(active: ActiveHead, rows: Rows) -> Float[np.ndarray, " input"]:
    scores = np.zeros(active.active_rows.shape)
    scores[active.active_rows] = _similarities(active.pattern, rows, active.active_rows)
    n_rows = active.active_rows.sum(axis=1)
    return np.where(n_rows > 0, scores.sum(axis=1) / np.maximum(1, n_rows), np.nan)


def _mean_similarity(compiled: Rows, learned: Rows, active: np.ndarray) -> float:
    return float(_similarities(compiled, learned, active).mean())


def _similarities(compiled: Rows, learned: Rows, active: np.ndarray) -> Float[np.ndarray, " row"]:
    rows = learned[active]
    total = rows.sum(axis=-1, keepdims=True)
    # What a row gives to positions that the task does not know, such as a BOS, is left out on both sides. A row
    # that gives them everything, or that the mask leaves nothing to attend to, is unlike any other.
    attends = total > SELECTS
    shares = np.where(attends, rows / np.where(attends, total, 1), 1.0)
    return np.where(attends[:, 0], similarity(compiled[active], shares), 0.0)


def _assignment(frame: pd.DataFrame) -> dict[Head, Head]:
    """The one-to-one assignment of compiled to learned heads with the most similarity and concordance in total."""
    if frame.empty:
        return {}
    total = frame.assign(total=frame["similarity"] + frame["concordance"].fillna(0))
    table = total.pivot_table(index=["compiled_layer", "compiled_head"], columns=["layer", "head"], values="total")
    rows, columns = table.index.tolist(), table.columns.tolist()
    chosen = zip(*linear_sum_assignment(table.to_numpy(), maximize=True), strict=True)
    return {rows[row]: columns[column] for row, column in chosen}
