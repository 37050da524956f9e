"""The inputs that questions about routes are of, and what the program answers to them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched
from rasplens.compare.claims.edges.program_edges import ProgramEdges, program_edges
from rasplens.compare.claims.posable import Posable, posable
from rasplens.compare.claims.trials.independent import PairsFrom
from rasplens.compare.evidence.attention.active_heads import active_heads
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.subject.studied_model import Head
from rasplens.model.interventions import EdgePart
from rasplens.tasks.task import NOT_ASKED


@dataclass(frozen=True, eq=False)
class Posed:
    """What the program answers with edges patched.

    Attributes:
        expected: The compiled model's answers, as the task's codes.
        changes: Where they differ from those on the base itself, which the model gives.
        at_risk: Where they do not, although the source's do: an answer that stays by what is patched alone.
        asked: Which of the pairs the task itself could pose, where an edge is patched, and an answer changes or is
            at risk.
    """

    expected: Int[np.ndarray, "pair answer"]
    changes: Bool[np.ndarray, "pair answer"]
    at_risk: Bool[np.ndarray, "pair answer"]
    asked: Bool[np.ndarray, " pair"]


@dataclass(frozen=True, eq=False)
class Pool:
    """The inputs that can be asked about: model and program agree throughout; of a part, on some answer.

    Attributes:
        pairing: The models.
        inputs: By their place in the pairing.
        edges: The program's, on them.
        posable: Which questions the task itself could pose.
        counting: The compiled heads that count.
        bases: The bases of pairs, by their place among the inputs.
        sources: The sources; None for any but the base.
    """

    pairing: Pairing
    inputs: Int[np.ndarray, " input"]
    edges: ProgramEdges
    posable: Posable
    counting: Sequence[Head]
    bases: Int[np.ndarray, " base"]
    sources: Int[np.ndarray, " source"] | None = None

    def heads(self, part: EdgePart) -> Sequence[Head] | None:
        """The compiled heads in which a part of edges is patched: all, or for counted edges those that count."""
        return self.counting if part == "attention" else None

    def among(self, pairs: PairsFrom) -> "Pool":
        """The pool for pairs of some inputs."""
        base, source = (np.flatnonzero(which[self.inputs]) for which in pairs)
        return replace(self, bases=base, sources=source)

    def posed_by(self, patch: EdgePatch) -> Posed:
        """The questions that patched edges pose."""
        reference, mixtures = self.pairing.reference, self.posable.mixtures()
        expected, scores = patched(reference, patch, mixtures.hooks, self.heads(patch.part))
        own, theirs = (reference.answers()[of] for of in (patch.base, patch.source))
        given = self.pairing.agreed[patch.base] & (own != NOT_ASKED)
        changes, stays = given & (expected != own), given & (expected == own)
        at_risk = stays & ((own != theirs) | (patch.part == "attention"))  # edges are removed without a source
        is_posed = self.posable.are_posed(expected, scores, mixtures.rows) & patch.edges.any(axis=(1, 2))
        return Posed(expected, changes, at_risk, is_posed & (changes | at_risk).any(axis=1))


def pool_of(pairing: Pairing) -> Pool:
    """The inputs of a pairing that can be asked about."""
    asked = pairing.agreed & (pairing.reference.answers() != NOT_ASKED)
    inputs = np.flatnonzero(asked.any(axis=1) if pairing.as_part else pairing.agrees)
    read = program_edges(pairing.compiled.program, pairing.task, pairing.ids[inputs])
    some = np.arange(int(read.defined.sum()))
    counting = [one.head for one in active_heads(pairing) if one.counts]
    return Pool(pairing, inputs[read.defined], read.of(read.defined), posable(pairing), counting, some)
