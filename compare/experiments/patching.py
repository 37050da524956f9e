"""Patching: activations and attention edges as they are on other inputs."""

# ruff: noqa: D417 - the parameters that all functions share are documented once, in the package

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from jaxtyping import Bool, Int

from rasplens.compare.claims.edges.attention_scores import why_not_patchable
from rasplens.compare.claims.edges.edge_patching import EdgePatch, patched
from rasplens.compare.config import CompareConfig, Preset, get_config
from rasplens.compare.experiments.reach import reaching, reaching_edges, seen_edges, varying, varying_edges
from rasplens.compare.experiments.setup import CONFIG, width_of
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.subject.interchange import taken
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compare.subject.vocabulary import GivenVocabulary
from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.model.interventions import EdgePart, Subspace, torch_hooks, whole
from rasplens.model.transformer import AnyModel
from rasplens.tasks import Task, as_task
from rasplens.tasks.task import Ids

Position = int | str
Edge = tuple[Position, Position]
"""A query's position and a key's."""


@dataclass(frozen=True, eq=False)
class Patched:
    """Answers on inputs with activations as they are on others, as codes of the task's `outputs`.

    Attributes:
        base: The inputs, as the task's ids.
        source: Where the activations come from, one for each.
        before: The model's answers on the base: `[pair, answer]`.
        of_source: Its answers on the source.
        after: Its answers on the base with the activations of the source.
        right: The right answers on the base.
    """

    base: Ids
    source: Ids
    before: Int[np.ndarray, "pair answer"]
    of_source: Int[np.ndarray, "pair answer"]
    after: Int[np.ndarray, "pair answer"]
    right: Int[np.ndarray, "pair answer"]

    @property
    def changed(self) -> float:
        """The share of answers that change."""
        return float((self.after != self.before).mean())

    @property
    def as_source(self) -> float:
        """Of the answers on which base and source differ, the share that become the source's; NaN without any."""
        differ = self.before != self.of_source
        return float((self.after == self.of_source)[differ].mean()) if differ.any() else float("nan")

    @property
    def accuracy(self) -> float:
        """The share of answers that are right on the base still."""
        return float((self.after == self.right).mean())

    def __repr__(self) -> str:
        shares = f"{self.changed:.3f} changed, {self.as_source:.3f} as on the source, {self.accuracy:.3f} right"
        return f"<Patched: {self.after.size} answers, {shares}>"


def patch(
    model: AnyModel,
    task: Task | str,
    point: str,
    *,
    positions: Sequence[Position] | None = None,
    heads: Iterable[int] | None = None,
    config: CompareConfig | Preset = CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> Patched:
    """Activation patching: held-out inputs with an activation as it is on others.

    Source: Meng et al. 2022, "Locating and Editing Factual Associations in GPT"; with clean answers on both sides
    it is resample ablation (Chan et al. 2022, "Causal Scrubbing").

    Args:
        point: A hook point of the residual stream, of an output, or of heads.
        positions: Where; by default everywhere.
        heads: Which heads, at `hook_q`, `hook_k`, `hook_v` or `hook_z`; by default all.

    Raises:
        RaspLensError: If the model has no such hook point, head or position; or if no answer can depend on what
            stands there, or it is the same on all inputs.
    """
    studied = _studied(model, as_task(task), config, seed, vocabulary)
    width = width_of(studied, point)
    subspace = whole(width) if heads is None else _of_heads(studied, point, list(heads))
    asked = _places(studied.task, positions)
    _check_asks(studied, point, asked)
    base, source = _pairs(studied, seed)
    intervened = np.zeros((len(base), studied.n_pos), dtype=bool)
    intervened[:, asked] = True
    hooks = torch_hooks([taken(studied, source, intervened, point, dict.fromkeys(asked, subspace))])
    return _outcome(studied, base, source, studied.codes(studied.logits(hooks, base), base))


def patch_edges(
    model: AnyModel,
    task: Task | str,
    edges: Sequence[Edge],
    part: EdgePart = "values",
    *,
    config: CompareConfig | Preset = CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> Patched:
    """Path patching along attention edges, in all layers and heads at once.

    Source: Wang et al. 2022, "Interpretability in the Wild", section 3.1.

    Args:
        edges: Pairs of a query's position and a key's.
        part: What is taken from the source: "values", "keys" or "queries"; "attention" takes the edge away.

    Raises:
        RaspLensError: If there is no such part, the model has no such position or does not see it, its edges
            cannot be patched; or if no answer can depend on any of them, or all carry the same on all inputs.
    """
    if part not in get_args(EdgePart):
        raise RaspLensError(f"part must be one of {', '.join(get_args(EdgePart))}; got {part!r}.")
    studied = _studied(model, as_task(task), config, seed, vocabulary)
    if not edges:
        raise RaspLensError("edges is empty: nothing is patched. Give (query, key) pairs of positions.")
    return _along(studied, _mask(studied, edges), part, seed)


def scrub(
    model: AnyModel,
    task: Task | str,
    edges: Sequence[Edge],
    *,
    config: CompareConfig | Preset = CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> Patched:
    """Resamples the values of all attention edges but some: what these carry is all that the answers may need.

    An edge from a position to itself is kept: it only repeats the residual stream. `accuracy` says how much of the
    behaviour the edges explain; compare it with `scrub(..., edges=[])`.

    Source: Chan et al. 2022, "Causal Scrubbing", for edges between positions.

    Args:
        edges: Those that are kept: pairs of a query's position and a key's.

    Raises:
        RaspLensError: If the model has no such position or does not see it, or its edges cannot be patched; or if
            no answer can depend on the others.
    """
    studied = _studied(model, as_task(task), config, seed, vocabulary)
    others = ~_mask(studied, edges) & ~np.eye(studied.n_pos, dtype=bool)
    return _along(studied, others, "values", seed)


def _studied(
    model: AnyModel, task: Task, config: CompareConfig | Preset, seed: int, vocabulary: GivenVocabulary | None
) -> StudiedModel:
    rows = random_streams.rng(seed, "experiment inputs").permutation(len(task.held_out))[
        : get_config(config).n_inputs
    ]
    return as_studied_model(model, task, task.held_out[rows], vocabulary)


def _along(studied: StudiedModel, mask: Bool[np.ndarray, "query key"], part: EdgePart, seed: int) -> Patched:
    if why := why_not_patchable(studied):
        raise RaspLensError(f"The model's edges cannot be patched: {why}.")
    if not (mask := mask & reaching_edges(studied, part).any(axis=0)).any():
        raise RaspLensError(f"No answer can depend on the {part} of these edges: no answer is read behind them.")
    if not (mask & varying_edges(studied, part)).any():
        raise RaspLensError(f"The {part} of these edges are the same on all inputs: patching changes nothing.")
    base, source = _pairs(studied, seed)
    everywhere = np.broadcast_to(mask, (len(base), *mask.shape))
    after, _ = patched(studied, EdgePatch(base, source, everywhere, part))
    return _outcome(studied, base, source, after)


def _check_asks(studied: StudiedModel, point: str, places: list[int]) -> None:
    """Raises where no answer can depend on what stands at a hook point, or that is the same on all inputs."""
    named = ", ".join(studied.task.positions[place] for place in places)
    if not places:
        raise RaspLensError("positions is empty: nothing is patched. Give some, or omit it for all of them.")
    if not reaching(studied, point)[places].any():
        raise RaspLensError(
            f"No answer can depend on {point} at {named}: nothing downstream reads it there. Give another "
            "position, or an earlier hook point."
        )
    if not varying(studied, point)[places].any():
        raise RaspLensError(f"{point} is the same on all inputs at {named}: patching it changes nothing.")


def _pairs(studied: StudiedModel, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Each input once, and for each another one."""
    n = studied.n_inputs
    if n < 2:
        raise RaspLensError(f"Patching needs at least two inputs; got {n}.")
    shift = random_streams.rng(seed, "experiment pairs").integers(1, n, n)
    return np.arange(n), (np.arange(n) + shift) % n


def _outcome(studied: StudiedModel, base: np.ndarray, source: np.ndarray, after: np.ndarray) -> Patched:
    clean = studied.answers()
    return Patched(
        studied.ids[base], studied.ids[source], clean[base], clean[source], after, studied.targets[base]
    )


def _of_heads(studied: StudiedModel, point: str, heads: list[int]) -> Subspace:
    n_heads = studied.model.cfg.n_heads
    if not point.endswith(("hook_q", "hook_k", "hook_v", "hook_z")):
        raise RaspLensError(f"{point} has no heads: give a hook point of heads, such as blocks.0.attn.hook_z.")
    if not heads:
        raise RaspLensError("heads is empty: nothing is patched. Give some, or omit it for all of them.")
    if wrong := [head for head in heads if not 0 <= head < n_heads]:
        raise RaspLensError(f"There is no head {wrong[0]}: a layer has {n_heads} heads, counted from 0.")
    return studied.heads_subspace(heads)


def _places(task: Task, positions: Sequence[Position] | None) -> list[int]:
    return list(range(task.n_ctx)) if positions is None else [task.place(position) for position in positions]


def _mask(studied: StudiedModel, edges: Sequence[Edge]) -> Bool[np.ndarray, "query key"]:
    """Which edges are among some.

    Raises:
        RaspLensError: If a query does not see its key.
    """
    task, seen = studied.task, seen_edges(studied)
    mask = np.zeros((task.n_ctx, task.n_ctx), dtype=bool)
    for query, key in edges:
        at, to = task.place(query), task.place(key)
        if not seen[at, to]:
            raise RaspLensError(
                f"Position {task.positions[at]} does not see {task.positions[to]}: there is no such edge. An edge "
                "is a (query, key) pair of positions, in this order."
            )
        mask[at, to] = True
    return mask
