"""Whether heads decide answers: what they gather is taken from another input, beside a compiled head's.

Heads that attend like a compiled head may do nothing for it. So what they gather, `z`, is taken from another input
at all positions, and so is the compiled head's. If these heads do its work, answers change where the compiled
model's do. Only posable questions count: what the compiled model then selects and answers, it does on some input.

Source: Geiger et al. 2021, "Causal Abstractions of Neural Networks" (interchange of a node).
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int

from rasplens.compare.claims.edges.attention_scores import keep
from rasplens.compare.claims.posable import posable
from rasplens.compare.claims.trials.independent import PairsFrom, Trials, one_of_each
from rasplens.compare.pairing.inputs import balanced
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.interchange import taken
from rasplens.compare.subject.studied_model import FwdHook, Head, StudiedModel
from rasplens.model.hook_points import act_name, layer_of
from rasplens.model.interventions import torch_hooks


def moves_answers(
    pairing: Pairing,
    compiled: Head,
    heads: Sequence[Head],
    rng: np.random.Generator,
    n: int,
    among: PairsFrom | None = None,
) -> Trials:
    """Where a compiled head changes an answer, whether heads of the learned model do.

    Args:
        pairing: The models, on inputs.
        compiled: The head of the compiled model.
        heads: Those of the learned one, taken together.
        rng: Draws pairs of inputs, and which answer of a pair counts.
        n: How many trials are sought.
        among: The inputs that pairs are of; by default all.

    Returns:
        A trial for each pair of inputs on which the compiled head changes an answer.
    """
    config, inputs = pairing.config, np.flatnonzero(pairing.agrees)
    own, none = pairing.reference.answers(), np.zeros((0, len(pairing.task.loss_positions)), dtype=bool)
    posed = posable(pairing)
    bases, moved, changes, sources = [inputs[:0]], [none], [none], [inputs[:0]]
    bases_of, sources_of = (inputs, inputs) if among is None else (inputs[which[inputs]] for which in among)
    tried = enough = 0
    while (
        min(len(inputs) - 1, len(bases_of), len(sources_of)) > 0 and tried < config.questions_tried and enough < n
    ):
        base = bases_of[balanced(pairing.balance, bases_of, n, rng)]
        source = sources_of[balanced(pairing.balance, sources_of, n, rng)]
        mixtures, scores = posed.mixtures(), dict[str, torch.Tensor]()
        watching = [(name, keep(scores, name)) for name in map(_scores, pairing.reference.attending_layers)]
        expected = interchanged(pairing.reference, [compiled], base, source, [*watching, *mixtures.hooks])
        by_layer = {layer_of(name): found.numpy() for name, found in scores.items()}
        is_posed = posed.are_posed(expected, by_layer, mixtures.rows)
        asked = (expected != own[base]) & (expected >= 0) & is_posed[:, None]
        rows = asked.any(axis=1)
        given = interchanged(pairing.learned, heads, base[rows], source[rows])
        bases.append(base[rows])
        moved.append(given != own[base[rows]])
        changes.append(asked[rows])
        sources.append(source[rows])
        tried += n
        enough += int(rows.sum())
    base, right, asked, source = (np.concatenate(part) for part in (bases, moved, changes, sources))
    found = one_of_each(pairing.answered, base, right, asked, rng, source)
    return found.of(slice(n))


def interchanged(
    studied: StudiedModel,
    heads: Sequence[Head],
    base: Int[np.ndarray, " pair"],
    source: Int[np.ndarray, " pair"],
    watching: Sequence[FwdHook] = (),
) -> Int[np.ndarray, "pair answer"]:
    """A model's answers with what some heads gather as it is on other inputs, at all positions.

    Args:
        studied: The model.
        heads: The heads.
        base: The inputs, by their place among the model's.
        source: The others, one for each.
        watching: More hooks, behind those that take it.
    """
    if not len(base):
        return np.zeros((0, len(studied.task.loss_positions)), dtype=int)
    everywhere, positions = np.ones((len(base), studied.n_pos), dtype=bool), range(studied.n_pos)
    layers = sorted({layer for layer, _ in heads})
    patches = [
        taken(
            studied,
            source,
            everywhere,
            act_name("z", layer),
            dict.fromkeys(positions, studied.heads_subspace(head for of, head in heads if of == layer)),
        )
        for layer in layers
    ]
    return studied.codes(studied.logits([*torch_hooks(patches), *watching], base), base)


def _scores(layer: int) -> str:
    return act_name("attn_scores", layer)
