"""How a model's residual stream represents the program's variables: one linear map, and what it says of each.

At every hook point and position the stream is regressed on all the variables of the compiled model together, on
the first inputs, and scored on the last. A variable's own rows of that map say where it writes while the other
variables are held constant. A subspace that is found for one variable alone, such as the span of its class
means, would hold what merely goes along with it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve, subspace_angles
from scipy.sparse import csr_array, hstack

from rasplens.compare.evidence.parallel import in_parallel
from rasplens.compare.pairing.pairing import Pairing, Side
from rasplens.compare.pairing.variables import determines, varies
from rasplens.compare.study import Study
from rasplens.compile import Variable
from rasplens.compile.rasp import Encoding

RIDGE = 1e-6
"""The ridge penalty, relative to the number of inputs: columns are indicators, or numbers of unit variance."""

MOST_CLASSES = 64
"""Numerical variables with more values enter the map as one column, others as one column per value."""

CLEAR = 0.1
"""A direction holds a variable if, on held-out inputs, the variable explains at least this share of the variance
that the other variables leave there, whatever its scale."""

AT_ONCE = 2**24
"""Most array entries that one thread works on: all hook points at once, except in a large model."""


@dataclass(frozen=True, eq=False)
class Representation:
    """One variable in the residual stream, at one hook point and position.

    Attributes:
        rows: What each of its values writes: `[column, d_model]`.
        basis: Orthonormal directions that hold it: `[d_model, rank]`; none if it explains nothing.
        explained: The share of the stream's variance at the position that only this variable explains: what is
            no longer explained on held-out inputs when it is left out of the map.
        present: The codes that the rows stand for; empty if the variable enters as a number.
    """

    rows: Float[np.ndarray, "column d_model"]
    basis: Float[np.ndarray, "d_model rank"]
    explained: float
    present: tuple[int, ...]


Place = tuple[str, str, int]
"""A variable's name, a hook point, and one of the task's positions."""

StreamsByPoint = Mapping[str, Sequence[Float[np.ndarray, "_ pos d_model"]]]
"""By hook point, the residual stream on several sets of inputs."""


def representations(
    study: Study, side: Side = "learned", names: Collection[str] | None = None
) -> dict[Place, Representation]:
    """How one side represents variables, at the positions where they vary and are used.

    Args:
        study: The models on the same inputs.
        side: Which of them.
        names: The variables; by default all that have directions of their own.
    """
    found: dict[Place, Representation] = {}
    used: dict[int, list[str]] = {}
    for name in (name for name in study.own_variables if names is None or name in names):
        for position in study.scored.relevance.positions(name):
            used.setdefault(position, []).append(name)
    for at_position in in_parallel(partial(_at_position, study, _streams(study, side)), sorted(used.items())):
        found |= at_position
    return found


def _parts(study: Study) -> tuple[Pairing, Pairing, Pairing]:
    """On inputs to fit on, out of distribution, and to score on."""
    return study.fitting, study.off_distribution, study.scored


def _streams(study: Study, side: Side) -> StreamsByPoint:
    """By hook point, the residual stream on all inputs, first those to fit on.

    What is asked of it nowhere else is not kept: it takes most of a comparison's memory.
    """
    fitting, others, scored = (getattr(part, side) for part in _parts(study))
    points = fitting.residual_points
    once = others.cache(points)
    return {
        point: [fitting.residual(point), once[point][:, others.places], scored.residual(point)] for point in points
    }


def _at_position(
    study: Study, streams_at: StreamsByPoint, used: tuple[int, list[str]]
) -> dict[Place, Representation]:
    position, names = used
    design = _design(study, position)
    asked = [name for name in names if name in design.own]
    if not asked:
        return {}
    found: dict[Place, Representation] = {}
    for points in _groups(streams_at):
        found |= _at_points(design, asked, position, {point: streams_at[point] for point in points})
    return found


def _groups(streams_at: StreamsByPoint) -> Iterator[list[str]]:
    """The hook points, as many at a time as working on them has room for."""
    points = list(streams_at)
    size = max(1, AT_ONCE // sum(part[:, 0].size for part in streams_at[points[0]]))
    return (points[start : start + size] for start in range(0, len(points), size))


def _at_points(
    design: "_Design", asked: Sequence[str], position: int, streams_at: StreamsByPoint
) -> dict[Place, Representation]:
    """How some variables are represented at one position of some hook points."""
    streams = np.stack(
        [np.concatenate([part[:, position] for part in at_point]) for at_point in streams_at.values()], axis=1
    ).astype(np.float64)
    fit, (n, n_points, width) = design.n_fitting, streams.shape
    streams -= streams[:fit].mean(axis=0)
    flat = streams.reshape(n, -1)
    inverse = design.inverse
    whole = inverse @ (design.columns[:fit].T @ flat[:fit])
    target = flat[fit:]
    total = _errors(target, n_points)
    error = _errors(target - design.predicted(whole), n_points)
    found: dict[Place, Representation] = {}
    for name in asked:
        mine = design.own[name]
        others = np.setdiff1d(np.arange(len(whole)), mine)
        left = target - design.predicted(whole[others], others)
        # The map without a variable: the others stand in for it as far as they go along with it.
        stand_in = -np.linalg.solve(inverse[np.ix_(mine, mine)], inverse[np.ix_(mine, others)])
        without = _errors(left - design.predicted(stand_in.T @ whole[mine], others), n_points)
        root, test = _root(design.covariance[np.ix_(mine, mine)]), design.scored(mine)
        for k, point in enumerate(streams_at):
            part = slice(k * width, (k + 1) * width)
            rows = whole[mine, part]
            explained = (min(without[k], total[k]) - error[k]) / total[k] if total[k] > 0 else 0.0
            basis = _basis(rows, root, test, left[:, part], total[k])
            found[name, point, position] = Representation(rows, basis, float(explained), design.present[name])
    return found


@dataclass(frozen=True, eq=False)
class _Design:
    """The variables at one position, as columns of the linear map.

    Nearly all columns are indicators, of which an input has one for each variable: so they are sparse, and centred
    only in what they come to.

    Attributes:
        columns: On all inputs, first those to fit on, not centred: `[input, column]`.
        n_fitting: The inputs to fit on.
        own: By variable, which columns are its.
        present: By variable, the codes that its columns stand for, see `Representation`.
    """

    columns: csr_array
    n_fitting: int
    own: Mapping[str, Int[np.ndarray, " column"]]
    present: Mapping[str, tuple[int, ...]]

    @cached_property
    def mean(self) -> Float[np.ndarray, " column"]:
        """Of the columns on the inputs to fit on."""
        return np.asarray(self.columns[: self.n_fitting].mean(axis=0))

    @cached_property
    def covariance(self) -> Float[np.ndarray, "column column"]:
        """The scatter of the columns on the inputs to fit on, about their mean."""
        fitted = self.columns[: self.n_fitting]
        return np.asarray((fitted.T @ fitted).todense()) - self.n_fitting * np.outer(self.mean, self.mean)

    @cached_property
    def inverse(self) -> Float[np.ndarray, "column column"]:
        """That of the scatter with the ridge penalty."""
        penalty = RIDGE * self.n_fitting * np.eye(len(self.mean))
        return cho_solve(cho_factor(self.covariance + penalty), np.eye(len(self.mean)))

    def scored(self, some: Int[np.ndarray, " column"]) -> Float[np.ndarray, "scored column"]:
        """Some columns, centred, on the inputs to score on."""
        return np.asarray(self.columns[self.n_fitting :, some].todense()) - self.mean[some]

    def predicted(
        self, weights: Float[np.ndarray, "column _"], some: Int[np.ndarray, " column"] | slice = slice(None)
    ) -> Float[np.ndarray, "scored _"]:
        """Return the predictions of some columns on the inputs to score on."""
        return np.asarray(self.columns[self.n_fitting :, some] @ weights - self.mean[some] @ weights)


def _design(study: Study, position: int) -> _Design:
    columns, present, parts = [], {}, _parts(study)
    all_codes = {
        name: np.concatenate([part.codes[name][:, position] for part in parts])
        for name, variable in study.compiled.variables.items()
        if not variable.is_view
    }
    shown = study.own_variables
    for name, codes in all_codes.items():
        # What the compiler adds of its own is held constant too, unless a variable determines it.
        follows = name not in shown and any(determines(all_codes[other], codes) for other in shown)
        if varies(codes) and not follows:
            block, present[name] = _columns(study.compiled.variables[name], codes)
            columns.append(block)
    ends = np.cumsum([block.shape[1] for block in columns])
    own = {
        name: np.arange(end - block.shape[1], end) for name, block, end in zip(present, columns, ends, strict=True)
    }
    n_fitting = sum(part.n_inputs for part in parts[:-1])
    n = n_fitting + study.scored.n_inputs
    return _Design(csr_array(hstack(columns)) if columns else csr_array((n, 0)), n_fitting, own, present)


def _columns(variable: Variable, codes: np.ndarray) -> tuple[csr_array, tuple[int, ...]]:
    """A variable as columns of the map: an indicator for each value that occurs, or the number."""
    values, places = np.unique(codes, return_inverse=True)
    if variable.encoding is Encoding.CATEGORICAL or len(values) <= MOST_CLASSES:
        rows = np.arange(len(codes))
        return csr_array((np.ones(len(codes)), (rows, places))), tuple(values.tolist())
    numbers = np.array([*(float(value) for value in variable.values), np.nan])[codes]
    is_defined = ~np.isnan(numbers)
    centred = np.where(is_defined, numbers - numbers[is_defined].mean(), 0.0)
    return csr_array(np.stack([centred / centred.std(), is_defined], axis=1).astype(np.float64)), ()


def _errors(left: np.ndarray, n_points: int) -> np.ndarray:
    """The squares of what is left, by hook point."""
    return (left.reshape(len(left), n_points, -1) ** 2).sum(axis=(0, 2))


def _basis(rows: np.ndarray, root: np.ndarray, test: np.ndarray, left: np.ndarray, total: float) -> np.ndarray:
    """The directions of a variable's rows that explain something on held-out inputs.

    Args:
        rows: `[column, d_model]`.
        root: A square root of the scatter of its columns on the inputs that were fitted: how often each value
            occurs.
        test: Its columns on held-out inputs, centred.
        left: What the other variables leave to explain there.
        total: The scatter of the stream itself: what is left is rounding if it is so much smaller.
    """
    _, _, directions = np.linalg.svd(root @ rows, full_matrices=False)
    predicted, actual = test @ (rows @ directions.T), left @ directions.T
    gains = (actual**2).sum(axis=0) - ((actual - predicted) ** 2).sum(axis=0)
    holds = gains > CLEAR * (actual**2).sum(axis=0)
    holds &= (actual**2).sum(axis=0) > np.finfo(np.float32).eps * total
    return directions[holds].T


def _root(scatter: np.ndarray) -> np.ndarray:
    """A square root of a scatter matrix: a stand-in for what it is of, but small."""
    values, vectors = np.linalg.eigh(scatter)
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T


def explained_table(found: Mapping[Place, Representation]) -> pd.DataFrame:
    """One row per variable, hook point and position: explained (share of variance), rank."""
    rows = [(*place, one.explained, one.basis.shape[1]) for place, one in found.items()]
    return pd.DataFrame(rows, columns=["variable", "point", "position", "explained", "rank"])


def overlap_table(found: Mapping[Place, Representation]) -> pd.DataFrame:
    """How the subspaces of two variables lie at one hook point and position.

    Returns:
        Columns first, second, point, position; cosine (of the smallest principal angle; 1 where the subspaces
        share a direction, 0 where they are orthogonal), shared (the mean squared cosine over the smaller
        subspace: 1 where it lies inside the other), and for variables with the same values correlation (of what
        their values write) and scale (how many times as large the second one's is).
    """
    return pd.DataFrame(
        list(_overlaps(found)),
        columns=["first", "second", "point", "position", "cosine", "shared", "correlation", "scale"],
    )


def _overlaps(found: Mapping[Place, Representation]) -> Iterator[tuple]:
    by_site: dict[tuple[str, int], list[tuple[str, Representation]]] = {}
    for (name, point, position), one in found.items():
        if one.basis.shape[1]:
            by_site.setdefault((point, position), []).append((name, one))
    for (point, position), variables in by_site.items():
        for (first, a), (second, b) in combinations(variables, 2):
            cosines = np.cos(subspace_angles(a.basis, b.basis))
            yield first, second, point, position, cosines.max(), (cosines**2).mean(), *_alike(a, b)


def _alike(a: Representation, b: Representation) -> Sequence[float]:
    """Correlation and ratio of sizes of what the same values write."""
    common = sorted(set(a.present) & set(b.present))
    if len(common) < 2:
        return float("nan"), float("nan")
    x, y = (one.rows[[one.present.index(code) for code in common]] for one in (a, b))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    sizes = np.linalg.norm(x), np.linalg.norm(y)
    if min(sizes) == 0:
        return float("nan"), float("nan")
    return float((x * y).sum() / (sizes[0] * sizes[1])), float(sizes[1] / sizes[0])
