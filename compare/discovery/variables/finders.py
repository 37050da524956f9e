"""Methods that look for a variable at a site: each gives subspaces, and says how sure it is that it is there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Float, Int

from rasplens.compare.claims.interchange.coordinates import Subspaces
from rasplens.compare.claims.interchange.das import distributed_alignment_search
from rasplens.compare.claims.interchange.patching import agreement
from rasplens.compare.claims.interchange.sites import mapped_subspaces
from rasplens.compare.claims.interchange.stream_axes import stream_axes
from rasplens.compare.discovery.variables.boundless_das import boundless_alignment_search
from rasplens.compare.discovery.variables.problem import VariableProblem
from rasplens.compare.evidence.subspaces.decodability import CHOICE_SHARE
from rasplens.compare.evidence.subspaces.probes import fit_discriminant, majority_share
from rasplens.model.interventions import Subspace, whole
from rasplens.model.random_streams import rng

SPANNED = 1e-3
"""A direction belongs to a span if its singular value is at least this share of the largest."""


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a method at a site.

    Attributes:
        subspaces: By position, where in the stream the variable is.
        evidence: How sure the method is that it is there; larger is surer. A method may only use `problem.fitting`
            and `problem.chosen` for it.
    """

    subspaces: Subspaces
    evidence: float


Finder = Callable[[VariableProblem, str], Found | None]
"""A method: finds a variable at one site of a problem; returns None if it cannot handle the model."""


def probe(problem: VariableProblem, site: str) -> Found:
    """Return the span of a linear probe's weights, and its accuracy above that of the commonest value.

    Alain and Bengio 2016 (arXiv 1610.01644). A probe finds what is there, whether or not anything reads it.
    """
    found, gains = {}, []
    for position in problem.chosen.positions:
        stream, codes = _at(problem, site, position)
        n = round(len(stream) * (1 - CHOICE_SHARE))
        fitted = fit_discriminant(stream[:n], codes[:n])
        right = float((fitted.predict(stream[n:]) == codes[n:]).mean())
        gains.append(right - majority_share(codes[:n], codes[n:]))
        found[position] = _span(fitted.coefficients)
    return Found(found, float(np.mean(gains)))


def class_means(problem: VariableProblem, site: str) -> Found:
    """The span of the means of the stream at each value; it is as sure as they explain the stream's variance."""
    found, shares = {}, []
    for position in problem.chosen.positions:
        stream, codes = _at(problem, site, position)
        means = np.stack([stream[codes == code].mean(axis=0) for code in range(codes.max() + 1)])
        scatter = ((stream - stream.mean(axis=0)) ** 2).sum()
        shares.append(float(((means[codes] - stream.mean(axis=0)) ** 2).sum() / scatter) if scatter else 0.0)
        found[position] = _span((means - means.mean(axis=0)).T)
    return Found(found, float(np.mean(shares)))


def linear_map(problem: VariableProblem, site: str) -> Found:
    """Where all variables are regressed on together: what a comparison takes first."""
    found = mapped_subspaces(problem.fitting.learned, problem.held, problem.variable, site)
    return _interchanged(problem, site, found)


def das(problem: VariableProblem, site: str) -> Found | None:
    """Distributed alignment search from a random start (Geiger et al. 2024, arXiv 2303.02536).

    Its rank is given, as published: one less than the variable has values. It needs a logit for each answer.
    """
    if problem.study.learned.vocabulary.columns is None:
        return None
    steps, start = problem.study.config.das_steps, _random(problem, site)
    search = distributed_alignment_search(
        problem.fitting.learned, problem.chosen, site, start, problem.seed, steps
    )
    return Found(search.subspaces, search.score)


def boundless_das(problem: VariableProblem, site: str) -> Found | None:
    """Boundless DAS: its rank is learned (Wu et al. 2023, arXiv 2305.08809), on two of three pairs."""
    if problem.study.learned.vocabulary.columns is None:
        return None
    chosen, studied = problem.chosen, problem.fitting.learned
    others = np.arange(len(chosen.base)) % 3 == 2
    found = boundless_alignment_search(studied, chosen.of(~others), site, problem.seed)
    return Found(found, agreement(studied, chosen.of(others), site, found).score)


def full_stream(problem: VariableProblem, site: str) -> Found:
    """All of the stream: it changes what must stay."""
    width = problem.fitting.learned.width(site)
    return _interchanged(problem, site, dict.fromkeys(problem.chosen.positions, whole(width)))


def random_subspace(problem: VariableProblem, site: str) -> Found:
    """A random subspace of the rank that DAS has: what any method has to beat."""
    return _interchanged(problem, site, _random(problem, site))


FINDERS: Mapping[str, Finder] = MappingProxyType(
    {
        "probe": probe,
        "class-means": class_means,
        "linear-map": linear_map,
        "das": das,
        "boundless-das": boundless_das,
        "full-stream": full_stream,
        "random": random_subspace,
    }
)
"""By name; the last two are controls."""


def _interchanged(problem: VariableProblem, site: str, subspaces: Subspaces) -> Found:
    """Subspaces with the agreement that their interchange reaches as the evidence."""
    return Found(subspaces, agreement(problem.fitting.learned, problem.chosen, site, subspaces).score)


def _random(problem: VariableProblem, site: str) -> Subspaces:
    """Random subspaces among the directions that the stream varies along, of a rank that the variable needs."""
    axes, random = stream_axes(problem.fitting.learned, site), rng(problem.seed, "circuit discovery controls")
    rank = max(1, len(problem.study.compiled.variables[problem.variable].values) - 1)
    return {position: axes[position].random(rank, random) for position in problem.chosen.positions}


def _at(
    problem: VariableProblem, site: str, position: int
) -> tuple[Float[np.ndarray, "input d_model"], Int[np.ndarray, " input"]]:
    """The stream at a position, and the variable's values there, from 0 on."""
    codes = problem.fitting.codes[problem.variable][:, position]
    return problem.fitting.learned.residual(site)[:, position], np.unique(codes, return_inverse=True)[1]


def _span(directions: Float[np.ndarray, "d_model column"]) -> Subspace:
    """Return the span of directions, with an orthogonal projection onto it."""
    basis, sizes, _ = np.linalg.svd(directions.astype(np.float64), full_matrices=False)
    basis = basis[:, sizes > SPANNED * sizes.max(initial=0)]
    return Subspace(basis, basis)
