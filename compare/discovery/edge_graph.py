"""The edges of a transformer: from every embedding, head and MLP to all that reads the residual stream behind it.

As in ACDC (Conmy et al. 2023, arXiv 2304.14997, section 2.1): a head reads three times, as queries, keys and
values.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from rasplens.errors import RaspLensError
from rasplens.model import Config

EMBED, POS_EMBED, LOGITS = "embed", "pos_embed", "logits"
"""The senders that write first, and the receiver that reads last."""


@dataclass(frozen=True)
class EdgeGraph:
    """All edges of a model, in forward order.

    Attributes:
        senders: What writes to the residual stream: `"embed"`, `"pos_embed"`, heads (`"L0H1"`) and MLPs (`"L0
            MLP"`).
        receivers: What reads it: `"L0H1.q"`, `"L0H1.k"`, `"L0H1.v"`, `"L0 MLP"` and `"logits"`.
        visible: How many of the senders have written when a receiver reads.
    """

    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    visible: tuple[int, ...]

    @cached_property
    def pairs(self) -> Int[np.ndarray, "edge 2"]:
        """Of each edge its receiver and its sender, as numbers."""
        return np.array([(r, s) for r, n in enumerate(self.visible) for s in range(n)], dtype=int).reshape(-1, 2)

    @cached_property
    def edges(self) -> tuple[str, ...]:
        """The name of each edge, such as `"embed->L0H1.q"`."""
        return tuple(f"{self.senders[s]}->{self.receivers[r]}" for r, s in self.pairs)

    def mask_of(self, edges: Collection[str]) -> Bool[np.ndarray, " edge"]:
        """Which of the edges are among some.

        Raises:
            RaspLensError: If one of these is no edge of the model.
        """
        wanted = set(edges)
        if unknown := sorted(wanted - set(self.edges)):
            raise RaspLensError(
                f"The model has no edge {unknown[0]!r}. Edges have names such as {self.edges[0]!r}."
            )
        return np.array([edge in wanted for edge in self.edges], dtype=bool)

    def touching(self, nodes: Collection[str]) -> Bool[np.ndarray, " edge"]:
        """Which edges have one of some nodes at an end."""
        ends = [(self.senders[s], self.node_of(self.receivers[r])) for r, s in self.pairs]
        return np.array([sender in nodes or receiver in nodes for sender, receiver in ends], dtype=bool)

    @property
    def from_embeddings(self) -> Bool[np.ndarray, " edge"]:
        """Which edges come from an embedding."""
        return np.array([self.senders[s] in (EMBED, POS_EMBED) for _, s in self.pairs], dtype=bool)

    @property
    def into_logits(self) -> Bool[np.ndarray, " edge"]:
        """Which edges go into the logits."""
        return np.array([self.receivers[r] == LOGITS for r, _ in self.pairs], dtype=bool)

    def merged(self, *, heads: bool, embeddings: bool) -> Int[np.ndarray, " edge"]:
        """For each edge the number of the one that it is part of.

        Args:
            heads: Whether a head's three readings are one.
            embeddings: Whether tokens and positions are one sender.
        """
        senders = [EMBED if embeddings and one == POS_EMBED else one for one in self.senders]
        receivers = [self.node_of(one) if heads else one for one in self.receivers]
        ends = [(senders[s], receivers[r]) for r, s in self.pairs]
        number = {both: i for i, both in enumerate(dict.fromkeys(ends))}
        return np.array([number[both] for both in ends], dtype=int)

    def node_of(self, receiver: str) -> str:
        """The node that a receiver is part of."""
        return receiver.partition(".")[0]


def place_of(node: str) -> tuple[int, int | None]:
    """The layer of a head or an MLP, by its name, and the head's number; None for an MLP."""
    if node.endswith(" MLP"):
        return int(node[1:].removesuffix(" MLP")), None
    layer, _, head = node[1:].partition("H")
    return int(layer), int(head)


def edge_graph(config: Config) -> EdgeGraph:
    """The edges of a model."""
    senders = [EMBED, *([POS_EMBED] if config.positions == "learned" else [])]
    receivers: list[str] = []
    visible: list[int] = []
    for layer in range(config.n_layers):
        heads = [f"L{layer}H{head}" for head in range(config.n_heads)]
        own = [f"{head}.{letter}" for letter in "qkv" for head in heads]
        receivers += own
        visible += [len(senders)] * len(own)
        senders += heads
        if not config.attn_only:
            receivers.append(f"L{layer} MLP")
            visible.append(len(senders))
            senders.append(f"L{layer} MLP")
    return EdgeGraph(tuple(senders), (*receivers, LOGITS), (*visible, len(senders)))
