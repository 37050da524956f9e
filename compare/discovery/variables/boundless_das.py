"""Boundless distributed alignment search: how many directions hold a variable is learned as well.

Source: Wu et al. 2023, "Interpretability at Scale: Identifying Causal Mechanisms in Alpaca" (arXiv 2305.08809).
All directions are turned; how many of the first are interchanged is a boundary that is soft at first, and harder
with every step, and a share of it is added to the loss.
"""

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.claims.interchange.das import interchange_loss, padded
from rasplens.compare.claims.interchange.pairs import InterchangePairs
from rasplens.compare.claims.interchange.stream_axes import stream_axes
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.model import random_streams
from rasplens.model.interventions import Subspace

STEPS, RATE = 200, 0.02

SOFT, HARD = 2.0, 0.1
"""Width of the soft boundary in directions, at first and at last, log-spaced in between."""

COST = 0.02
"""Cost of interchanging all directions, in units of the loss when none are: logits differ in size."""


def boundless_alignment_search(
    studied: StudiedModel, pairs: InterchangePairs, point: str, seed: int, steps: int = STEPS
) -> dict[int, Subspace]:
    """By position, the subspace whose interchange makes the model answer as the program does.

    Args:
        studied: The model; it has to answer by logits.
        pairs: The pairs to learn on.
        point: A hook point of the residual stream.
        seed: Of the start.
        steps: Of Adam.
    """
    known = stream_axes(studied, point)
    axes = {position: known[position] for position in pairs.positions if known[position].n_axes}
    if not axes:
        return {}
    to, back = padded(axes)
    loss = interchange_loss(studied, pairs, point, list(axes), to, back)
    counts = torch.tensor([own.n_axes for own in axes.values()], dtype=torch.float64)
    rng = random_streams.rng(seed, "distributed alignment")
    turned = torch.tensor(_start(rng, to.shape[2], [own.n_axes for own in axes.values()]), requires_grad=True)
    share = torch.full((len(axes),), 0.5, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([turned, share], lr=RATE)
    places = torch.arange(to.shape[2], dtype=torch.float64) + 0.5
    with torch.no_grad():
        cost = COST * loss(torch.zeros_like(turned))
    for blur in np.geomspace(SOFT, HARD, steps):
        optimiser.zero_grad()
        mask = torch.sigmoid(((share.clamp(0, 1) * counts)[:, None] - places) / blur)
        value = loss(torch.linalg.qr(turned)[0] * mask.sqrt()[:, None]) + cost * share.clamp(0, 1).mean()
        value.backward()
        optimiser.step()
    with torch.no_grad():
        bases, ranks = torch.linalg.qr(turned)[0].numpy(), (share.clamp(0, 1) * counts).round().int().tolist()
    return {
        position: own.subspace(basis[: own.n_axes, :rank])
        for (position, own), basis, rank in zip(axes.items(), bases, ranks, strict=True)
    }


def _start(rng: np.random.Generator, most: int, counts: list[int]) -> Float[np.ndarray, "pos axis axis"]:
    """Random directions of the axes that there are; the identity on those that a position has not."""
    found = np.tile(np.eye(most), (len(counts), 1, 1))
    for one, n in zip(found, counts, strict=True):
        one[:n, :n] = rng.normal(size=(n, n)) / np.sqrt(n)
    return found
