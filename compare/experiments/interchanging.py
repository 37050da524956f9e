"""Interchange interventions on one variable of a program, and the search for subspaces that hold it."""

# ruff: noqa: D417 - the parameters that all functions share are documented once, in the package

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from rasplens.compare.claims.interchange.coordinates import Subspaces
from rasplens.compare.claims.interchange.das import distributed_alignment_search
from rasplens.compare.claims.interchange.pairs import InterchangePairs, interchange_pairs
from rasplens.compare.claims.interchange.patching import agreement
from rasplens.compare.claims.interchange.sites import mapped_subspaces
from rasplens.compare.claims.interchange.stream_axes import stream_axes
from rasplens.compare.config import CompareConfig, Preset, get_config
from rasplens.compare.evidence.subspaces.representations import representations
from rasplens.compare.experiments.reach import reaching
from rasplens.compare.experiments.setup import CONFIG, width_of
from rasplens.compare.pairing.pairing import Pairing
from rasplens.compare.pairing.reference import reference_of
from rasplens.compare.study import Study, study_of
from rasplens.compare.subject.vocabulary import GivenVocabulary
from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.model.interventions import Subspace, whole
from rasplens.model.transformer import AnyModel
from rasplens.tasks import Task, as_task
from rasplens.tasks.compiling import AnyProgram


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


def interchange(
    program: AnyProgram,
    model: AnyModel,
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
        RaspLensError: If the variable cannot be interchanged, there is no such hook point, no answer can depend on
            it, or a subspace has no directions or is at a position where the variable is never interchanged.
    """
    study = _studied(program, model, task, config, seed, vocabulary)
    width = width_of(study.learned, point)
    given = None if subspaces is None else _given(subspaces, width)
    pairs = _interchange_pairs(study, study.scored, variable, seed)
    _check_reaches(study, pairs, point)
    if given is not None:
        _check_interchanged(study, pairs, given)
    found = dict.fromkeys(pairs.positions, whole(width)) if given is None else given
    return _interchanged(study, pairs, point, found, seed)


def find_subspaces(
    program: AnyProgram,
    model: AnyModel,
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
        RaspLensError: If the variable cannot be interchanged, there is no such hook point or no answer can depend
            on it, the activation has no such rank, or the model answers by numbers.
    """
    study = _studied(program, model, task, config, seed, vocabulary)
    fitted = study.fitting.learned
    width_of(fitted, point)
    if fitted.vocabulary.columns is None:
        raise RaspLensError("The model answers with numbers; find_subspaces needs logits.")
    chosen, scored = (_interchange_pairs(study, part, variable, seed) for part in (study.fitting, study.scored))
    _check_reaches(study, chosen, point)
    mapped, axes = mapped_subspaces(fitted, representations(study), variable, point), stream_axes(fitted, point)
    start = {at: mapped[at] for at in chosen.positions if at in mapped}
    if not any(axes[at].n_axes for at in chosen.positions):
        raise RaspLensError(f"{point} does not vary at any position at which {variable!r} is interchanged.")
    if rank is not None:
        _check_rank(study, point, rank, {at: axes[at].n_axes for at in chosen.positions if axes[at].n_axes})
        drawn = {
            at: axes[at].random(rank, random_streams.rng(seed, "distributed alignment"))
            for at in chosen.positions
            if axes[at].n_axes
        }
        start = {
            at: start[at].first(rank) if at in start and start[at].rank >= rank else drawn[at] for at in drawn
        }
    steps = study.config.das_steps
    found = distributed_alignment_search(fitted, chosen, point, start, seed, steps).subspaces
    return _interchanged(study, scored, point, found, seed)


def _check_rank(study: Study, point: str, rank: int, n_axes: Mapping[int, int]) -> None:
    """Raises where an activation has fewer directions than a search is to find, or that is to find none."""
    at = min(n_axes, key=lambda position: n_axes[position])
    if not 1 <= rank <= n_axes[at]:
        raise RaspLensError(
            f"rank must be between 1 and {n_axes[at]}, the number of directions along which {point} varies at "
            f"{study.task.positions[at]}; got {rank}."
        )


def _check_reaches(study: Study, pairs: InterchangePairs, point: str) -> None:
    """Raises where no answer can depend on an activation at the positions of a variable."""
    if not reaching(study.learned, point)[pairs.positions].any():
        named = ", ".join(study.task.positions[place] for place in pairs.positions)
        raise RaspLensError(
            f"{pairs.variable!r} is interchanged at {named}; no answer can depend on {point} there. Give an "
            "earlier hook point."
        )


def _check_interchanged(study: Study, pairs: InterchangePairs, subspaces: Subspaces) -> None:
    """Raises where a subspace would never be taken from another input, or has nothing to be taken."""
    names = study.task.positions
    named = ", ".join(f"{place} ({names[place]})" for place in pairs.positions)
    if not subspaces:
        raise RaspLensError(f"subspaces is empty: nothing is interchanged. Give one for each of {named}.")
    if other := [position for position in subspaces if position not in pairs.positions]:
        raise RaspLensError(
            f"subspaces has position {other[0]}, where {pairs.variable!r} is never interchanged; give one for "
            f"each of {named}."
        )
    if empty := [position for position, one in subspaces.items() if not one.rank]:
        raise RaspLensError(
            f"The subspace at position {empty[0]} has no directions: nothing is interchanged there."
        )


def _studied(
    program: AnyProgram,
    model: AnyModel,
    task: Task | str,
    config: CompareConfig | Preset,
    seed: int,
    vocabulary: GivenVocabulary | None,
) -> Study:
    task = as_task(task)
    return study_of(reference_of(program, task), model, task, get_config(config), seed, vocabulary)


def _interchange_pairs(study: Study, part: Pairing, variable: str, seed: int) -> InterchangePairs:
    if variable not in study.compiled.variables:
        raise RaspLensError(
            f"The program {study.compiled.output!r} has no variable {variable!r}; it has "
            f"{', '.join(map(repr, study.compiled.variables))}."
        )
    found = interchange_pairs(part, variable, study.interchangeable_positions(variable), seed)
    if found is None:
        raise RaspLensError(f"{variable!r} cannot be interchanged: {study.why_not_interchangeable(variable)}.")
    return found


def _interchanged(
    study: Study, pairs: InterchangePairs, point: str, subspaces: Subspaces, seed: int
) -> Interchanged:
    studied, width = study.learned, width_of(study.learned, point)
    found = agreement(studied, pairs, point, subspaces)
    is_whole = all(one.rank == width for one in subspaces.values())
    control = float("nan")
    if not is_whole:
        axes = stream_axes(studied, point)
        rng = random_streams.rng(seed, "interchange controls")
        others = [
            {at: axes[at].random(one.rank, rng) for at, one in subspaces.items()}
            for _ in range(study.config.random_subspaces)
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


def _given(subspaces: Mapping[int, Any], width: int) -> dict[int, Subspace]:
    found = {}
    for position, one in subspaces.items():
        if isinstance(one, Subspace):
            found[position] = one
            continue
        basis = np.asarray(one, dtype=np.float64)
        if basis.ndim != 2 or basis.shape[0] != width:
            raise RaspLensError(f"The basis of a subspace must have shape [{width}, rank]; got {basis.shape}.")
        if not np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-4):
            raise RaspLensError("The basis of a subspace must be orthonormal; np.linalg.qr(basis)[0] makes it so.")
        found[position] = Subspace(basis, basis)
    return found
