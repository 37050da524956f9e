"""Single interventions on any model: patching, interchange, a search for a subspace, and what edges carry.

`compare` does all of these and decides. Here each stands alone, for an experiment of one's own in a few lines.

All functions share these parameters:
    model: Anything that `compare` takes as a learned model.
    program: An s-op, a `CompiledModel`, or the name of one of the task's programs.
    task: What the model is asked, or its name.
    positions: Of the task, by place or name.
    config: How many inputs and pairs.
    seed: Of the choice of inputs and of the controls.
    vocabulary: The model's vocabulary for the task, if it is not the task's own.
"""

# ruff: noqa: D417 - the parameters that all functions share are documented once, above

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.config import CompareConfig, Preset, get_config
from rasplens.compare.evidence.interchange.coordinates import Subspace, Subspaces, whole
from rasplens.compare.evidence.interchange.das import distributed_alignment_search
from rasplens.compare.evidence.interchange.pairs import (
    InterchangePairs,
    interchange_pairs,
    interchangeable_positions,
    why_not_interchangeable,
)
from rasplens.compare.evidence.interchange.patching import agreement, taken
from rasplens.compare.evidence.interchange.sites import mapped_subspaces
from rasplens.compare.evidence.interchange.stream_axes import stream_axes
from rasplens.compare.evidence.routes.edge_patching import Part, patched, why_not_patchable
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.models.pairing import Pairing, pair
from rasplens.compare.models.studied_model import StudiedModel, as_studied_model
from rasplens.compare.models.vocabulary import GivenVocabulary
from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.tasks import Task, as_task, compile_for
from rasplens.tasks.task import Ids

CONFIG = CompareConfig(n_inputs=300)
"""How much is looked at, unless told otherwise."""

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


@dataclass(frozen=True, eq=False)
class Interchanged:
    """How often a model answers as the program does when one variable is interchanged in both.

    Attributes:
        variable: Its name.
        point: The hook point at which the model's activation was interchanged.
        subspaces: By position, what of the activation.
        pairs: On which pairs of held-out inputs, and what the program answers.
        iia: Interchange-intervention accuracy: of the answers that are to change, the share as expected.
        specificity: Of the answers that are to stay, the share that do.
        random: The smaller of both for random subspaces of the same rank; NaN for a whole activation.
        full_stream: The smaller of both for the whole activation, which changes what must stay.
    """

    variable: str
    point: str
    subspaces: Subspaces
    pairs: InterchangePairs
    iia: float
    specificity: float
    random: float
    full_stream: float

    @property
    def score(self) -> float:
        """The smaller of `iia` and `specificity`."""
        return min(self.iia, self.specificity)

    def __repr__(self) -> str:
        shares = f"IIA {self.iia:.3f}, specificity {self.specificity:.3f}"
        controls = f"random {self.random:.3f}, full stream {self.full_stream:.3f}"
        n_pairs = len(self.pairs.base)
        return f"<Interchanged {self.variable!r} at {self.point}: {shares} ({controls}; {n_pairs} pairs)>"


def patch(
    model: Any,
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
        RaspLensError: If the model has no such hook point, head or position.
    """
    studied = _studied(model, as_task(task), config, seed, vocabulary)
    width = _width(studied, point)
    subspace = whole(width) if heads is None else _of_heads(studied, point, list(heads), width)
    asked = _places(studied.task, positions)
    base, source = _pairs(studied, seed)
    intervened = np.zeros((len(base), studied.n_pos), dtype=bool)
    intervened[:, asked] = True
    hook = taken(studied, source, intervened, point, dict.fromkeys(asked, subspace))
    return _outcome(studied, base, source, studied.vocabulary.codes(studied.logits([hook], base)))


def patch_edges(
    model: Any,
    task: Task | str,
    edges: Sequence[Edge],
    part: Part = "values",
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
        RaspLensError: If the model has no such position, or its edges cannot be patched.
    """
    studied = _studied(model, as_task(task), config, seed, vocabulary)
    return _along(studied, _mask(studied.task, edges), part, seed)


def scrub(
    model: Any,
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
        RaspLensError: If the model has no such position, or its edges cannot be patched.
    """
    studied = _studied(model, as_task(task), config, seed, vocabulary)
    others = ~_mask(studied.task, edges) & ~np.eye(studied.n_pos, dtype=bool)
    return _along(studied, others, "values", seed)


def interchange(
    program: Any,
    model: Any,
    task: Task | str,
    variable: str,
    point: str,
    *,
    subspaces: Mapping[int, Float[np.ndarray, "width rank"] | Subspace] | None = None,
    config: CompareConfig | Preset = CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> Interchanged:
    """Interchange interventions on one variable, on held-out pairs of inputs.

    Source: Geiger et al. 2021, "Causal Abstractions of Neural Networks".

    Args:
        variable: The name of an intermediate variable of the program.
        point: The hook point of the model that is to hold it.
        subspaces: By position, what of the activation holds it: an orthonormal basis, or what `find_subspaces`
            found; by default the whole activation.

    Raises:
        RaspLensError: If the variable cannot be interchanged, or there is no such hook point.
    """
    pairing = _paired(program, model, task, config, seed, vocabulary)
    width = _width(pairing.learned, point)
    given = None if subspaces is None else _given(subspaces, width)
    pairs = _interchange_pairs(pairing, variable, seed)
    return _interchanged(pairing, pairs, point, given or dict.fromkeys(pairs.positions, whole(width)), seed)


def find_subspaces(
    program: Any,
    model: Any,
    task: Task | str,
    variable: str,
    point: str,
    *,
    rank: int | None = None,
    config: CompareConfig | Preset = CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> Interchanged:
    """Distributed alignment search: subspaces of an activation that hold a variable, and how well.

    The search begins where a linear map from the activation finds the variable. It learns on other inputs than
    those that it is scored on.

    Source: Geiger et al. 2024, "Finding Alignments Between Interpretable Causal Variables and Distributed Neural
    Representations".

    Args:
        variable: The name of an intermediate variable of the program.
        point: A hook point of the model's residual stream.
        rank: Of the subspaces; by default that of the linear map, or 8 where it finds nothing.

    Raises:
        RaspLensError: If the variable cannot be interchanged, there is no such hook point, or the model answers by
            numbers.
    """
    pairing = _paired(program, model, task, config, seed, vocabulary)
    assert pairing.fitting is not None
    fitted = pairing.fitting.learned
    _width(fitted, point)
    if fitted.vocabulary.columns is None:
        raise RaspLensError("The model answers by numbers: a search by gradients needs logits.")
    chosen, scored = (_interchange_pairs(part, variable, seed) for part in (pairing.fitting, pairing))
    start = mapped_subspaces(fitted, representations(pairing), variable, point)
    if rank is not None:
        axes = stream_axes(fitted, point)
        drawn = {at: _random(axes[at].n_axes, rank, axes[at].subspace, seed) for at in chosen.positions}
        start = {
            at: start[at].first(rank) if at in start and start[at].rank >= rank else drawn[at] for at in drawn
        }
    steps = pairing.config.das_steps
    found = distributed_alignment_search(fitted, chosen, point, start, seed, steps).subspaces
    return _interchanged(pairing, scored, point, found, seed)


def _paired(
    program: Any,
    model: Any,
    task: Task | str,
    config: CompareConfig | Preset,
    seed: int,
    vocabulary: GivenVocabulary | None,
) -> Pairing:
    task = as_task(task)
    return pair(compile_for(task, program), model, task, get_config(config), seed, vocabulary)


def _studied(
    model: Any, task: Task, config: CompareConfig | Preset, seed: int, vocabulary: GivenVocabulary | None
) -> StudiedModel:
    rows = random_streams.rng(seed, "experiment inputs").permutation(len(task.held_out))[
        : get_config(config).n_inputs
    ]
    return as_studied_model(model, task, task.held_out[rows], vocabulary)


def _interchange_pairs(pairing: Pairing, variable: str, seed: int) -> InterchangePairs:
    if variable not in pairing.compiled.variables:
        raise RaspLensError(
            f"The program {pairing.compiled.output!r} has no variable {variable!r}; it has "
            f"{', '.join(map(repr, pairing.compiled.variables))}."
        )
    found = interchange_pairs(pairing, variable, interchangeable_positions(pairing, variable), seed)
    if found is None:
        raise RaspLensError(f"{variable!r} cannot be interchanged: {why_not_interchangeable(pairing, variable)}.")
    return found


def _interchanged(
    pairing: Pairing, pairs: InterchangePairs, point: str, subspaces: Subspaces, seed: int
) -> Interchanged:
    studied, width = pairing.learned, _width(pairing.learned, point)
    found = agreement(studied, pairs, point, subspaces)
    is_whole = all(one.rank == width for one in subspaces.values())
    control = float("nan")
    if not is_whole:
        axes = stream_axes(studied, point)
        others = [
            {at: _random(axes[at].n_axes, one.rank, axes[at].subspace, [seed, i]) for at, one in subspaces.items()}
            for i in range(pairing.config.random_subspaces)
        ]
        control = float(np.mean([agreement(studied, pairs, point, other).score for other in others]))
    return Interchanged(
        variable=pairs.variable,
        point=point,
        subspaces=subspaces,
        pairs=pairs,
        iia=float(found.iia.mean()),
        specificity=float(found.specificity.mean()),
        random=control,
        full_stream=agreement(studied, pairs, point, None).score,
    )


def _random(n_axes: int, rank: int, subspace: Any, seed: Any) -> Subspace:
    """A random subspace of the directions that an activation varies along."""
    drawn = np.random.default_rng(seed).normal(size=(n_axes, min(rank, n_axes)))
    return subspace(np.linalg.qr(drawn)[0])


def _given(subspaces: Mapping[int, Any], width: int) -> dict[int, Subspace]:
    found = {}
    for position, one in subspaces.items():
        if isinstance(one, Subspace):
            found[position] = one
            continue
        basis = np.asarray(one, dtype=np.float64)
        if basis.ndim != 2 or basis.shape[0] != width:
            raise RaspLensError(f"A subspace here is a basis [{width}, rank]; got shape {basis.shape}.")
        if not np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-4):
            raise RaspLensError("A subspace is given by an orthonormal basis; np.linalg.qr(basis)[0] makes one.")
        found[position] = Subspace(basis, basis)
    return found


def _along(studied: StudiedModel, mask: Bool[np.ndarray, "query key"], part: Part, seed: int) -> Patched:
    if why := why_not_patchable(studied):
        raise RaspLensError(f"The model's edges cannot be patched: {why}.")
    base, source = _pairs(studied, seed)
    after, _ = patched(studied, base, source, np.broadcast_to(mask, (len(base), *mask.shape)), part)
    return _outcome(studied, base, source, after)


def _pairs(studied: StudiedModel, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Each input once, and for each another one."""
    n = studied.n_inputs
    if n < 2:
        raise RaspLensError("Patching needs two inputs at least.")
    shift = random_streams.rng(seed, "experiment pairs").integers(1, n, n)
    return np.arange(n), (np.arange(n) + shift) % n


def _outcome(studied: StudiedModel, base: np.ndarray, source: np.ndarray, after: np.ndarray) -> Patched:
    clean = studied.answers()
    return Patched(
        studied.ids[base], studied.ids[source], clean[base], clean[source], after, studied.targets[base]
    )


def _width(studied: StudiedModel, point: str) -> int:
    if point not in studied.model.hook_dict:
        known = ", ".join(list(studied.model.hook_dict)[:4])
        raise RaspLensError(f"The model has no hook point {point!r}. It has {known}, …")
    activation = studied.first(1).activation(point)
    if activation.ndim != 3 or "attn_scores" in point or "pattern" in point:
        raise RaspLensError(f"{point} holds attention, which has no vector at a position; use `patch_edges`.")
    return int(activation.shape[-1])


def _of_heads(studied: StudiedModel, point: str, heads: list[int], width: int) -> Subspace:
    n_heads = studied.model.cfg.n_heads
    if not point.endswith(("hook_q", "hook_k", "hook_v", "hook_z")):
        raise RaspLensError(f"{point} has no heads: give a hook point of heads, such as blocks.0.attn.hook_z.")
    if wrong := [head for head in heads if not 0 <= head < n_heads]:
        raise RaspLensError(f"There is no head {wrong[0]}: a layer has {n_heads}, counted from 0.")
    size = width // n_heads
    basis = np.eye(width)[:, [i for head in heads for i in range(head * size, (head + 1) * size)]]
    return Subspace(basis, basis)


def _places(task: Task, positions: Sequence[Position] | None) -> list[int]:
    return list(range(task.n_ctx)) if positions is None else [task.place(position) for position in positions]


def _mask(task: Task, edges: Sequence[Edge]) -> Bool[np.ndarray, "query key"]:
    mask = np.zeros((task.n_ctx, task.n_ctx), dtype=bool)
    for query, key in edges:
        mask[task.place(query), task.place(key)] = True
    return mask
