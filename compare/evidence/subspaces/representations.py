"""How a model's residual stream represents the program's variables: one linear map, and what it says of each.

At every hook point and position the stream is regressed on all the variables of the compiled model together, on
the first inputs, and scored on the last. A variable's own rows of that map say where it writes while the other
variables are held constant. A subspace that is found for one variable alone, such as the span of its class
means, would hold what merely goes along with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve, subspace_angles

from rasplens.compare.evidence.parallel import in_parallel
from rasplens.compare.models.pairing import Pairing, Side
from rasplens.compile import Variable
from rasplens.compile.rasp import Encoding

RIDGE = 1e-6
"""The ridge penalty, relative to the number of inputs: columns are indicators, or numbers of unit variance."""

MOST_CLASSES = 64
"""Numbers with more values than this enter the map as one column, others as one for each value."""

CLEAR = 0.1
"""A direction holds a variable if that explains, on held-out inputs, at least this share of what the others leave
of it; whatever its scale."""

MOST_COMMON = 0.95
"""A variable whose commonest value covers more of the inputs than this counts as constant there."""


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


def own_variables(pairing: Pairing) -> dict[str, Variable]:
    """The variables with directions of their own: s-ops of the program that are no mere views of others."""
    variables = pairing.compiled.variables
    return {name: v for name, v in variables.items() if not (v.is_view or v.is_auxiliary)}


def varies(codes: np.ndarray) -> bool:
    """Whether a variable takes more than one value often enough to be told apart."""
    _, counts = np.unique(codes, return_counts=True)
    return bool(counts.max() <= MOST_COMMON * len(codes))


def representations(pairing: Pairing, side: Side = "learned") -> dict[Place, Representation]:
    """How one side of a pairing represents every variable, at the positions where it varies and is used."""
    found: dict[Place, Representation] = {}
    used: dict[int, list[str]] = {}
    for name in own_variables(pairing):
        for position in pairing.relevant_positions(name):
            used.setdefault(position, []).append(name)
    for at_position in in_parallel(partial(_at_position, pairing, _streams(pairing, side)), sorted(used.items())):
        found |= at_position
    return found


def _streams(pairing: Pairing, side: Side) -> StreamsByPoint:
    """On inputs to fit on, out of distribution, and to score on."""
    models = [getattr(part, side) for part in (pairing.fitting, pairing.out_of_distribution, pairing)]
    return {point: [studied.residual(point) for studied in models] for point in models[0].residual_points}


def _at_position(
    pairing: Pairing, streams_at: StreamsByPoint, used: tuple[int, list[str]]
) -> dict[Place, Representation]:
    assert pairing.fitting is not None
    assert pairing.out_of_distribution is not None
    position, asked = used
    columns, present, parts = [], {}, (pairing.fitting, pairing.out_of_distribution, pairing)
    all_codes = {
        name: np.concatenate([part.codes[name][:, position] for part in parts])
        for name, variable in pairing.compiled.variables.items()
        if not variable.is_view
    }
    shown = own_variables(pairing)
    for name, codes in all_codes.items():
        # What the compiler adds of its own is held constant too, unless a variable determines it.
        follows = name not in shown and any(determines(all_codes[other], codes) for other in shown)
        if varies(codes) and not follows:
            block, present[name] = _columns(pairing.compiled.variables[name], codes)
            columns.append(block)
    if not any(name in present for name in asked):
        return {}
    ends = np.cumsum([block.shape[1] for block in columns])
    own = {
        name: np.arange(end - block.shape[1], end) for name, block, end in zip(present, columns, ends, strict=True)
    }
    fit = pairing.fitting.n_inputs + pairing.out_of_distribution.n_inputs
    features = np.hstack(columns)
    features = features - features[:fit].mean(axis=0)
    streams = np.stack(
        [np.concatenate([part[:, position] for part in at_point]) for at_point in streams_at.values()], axis=1
    ).astype(np.float64)
    streams -= streams[:fit].mean(axis=0)
    n, n_points, width = streams.shape
    flat = streams.reshape(n, -1)
    gram = features[:fit].T @ features[:fit] + RIDGE * fit * np.eye(features.shape[1])
    cross = features[:fit].T @ flat[:fit]
    inverse = cho_solve(cho_factor(gram), np.eye(len(gram)))
    whole = inverse @ cross
    test, target = features[fit:], flat[fit:]
    total, error = _errors(np.zeros_like(target), target, n_points), _errors(test @ whole, target, n_points)
    found: dict[Place, Representation] = {}
    for name in (name for name in asked if name in own):
        mine = own[name]
        others = np.setdiff1d(np.arange(features.shape[1]), mine)
        left = target - test[:, others] @ whole[others]
        # The map without a variable: the others stand in for it as far as they go along with it.
        stand_in = -np.linalg.solve(inverse[np.ix_(mine, mine)], inverse[np.ix_(mine, others)])
        without = _errors(test[:, others] @ stand_in.T @ whole[mine], left, n_points)
        for k, point in enumerate(streams_at):
            part = slice(k * width, (k + 1) * width)
            rows = whole[mine, part]
            explained = (min(without[k], total[k]) - error[k]) / total[k] if total[k] > 0 else 0.0
            basis = _basis(rows, features[:fit, mine], test[:, mine], left[:, part], total[k])
            found[name, point, position] = Representation(rows, basis, float(explained), present[name])
    return found


def determines(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the second variable is a function of the first, on the inputs at hand."""
    pairs = np.unique(np.stack([first, second]), axis=1)
    return pairs.shape[1] == len(np.unique(first))


def _columns(variable: Variable, codes: np.ndarray) -> tuple[np.ndarray, tuple[int, ...]]:
    """A variable as columns of the map: an indicator for each value that occurs, or the number."""
    values = np.unique(codes)
    if variable.encoding is Encoding.CATEGORICAL or len(values) <= MOST_CLASSES:
        return (codes[:, None] == values).astype(np.float64), tuple(values.tolist())
    numbers = np.array([*(float(value) for value in variable.values), np.nan])[codes]
    is_defined = ~np.isnan(numbers)
    centred = np.where(is_defined, numbers - numbers[is_defined].mean(), 0.0)
    return np.stack([centred / centred.std(), is_defined], axis=1).astype(np.float64), ()


def _errors(predicted: np.ndarray, target: np.ndarray, n_points: int) -> np.ndarray:
    return ((predicted - target).reshape(len(target), n_points, -1) ** 2).sum(axis=(0, 2))


def _basis(rows: np.ndarray, fitted: np.ndarray, test: np.ndarray, left: np.ndarray, total: float) -> np.ndarray:
    """The directions of a variable's rows that explain something on held-out inputs.

    Args:
        rows: `[column, d_model]`.
        fitted: Its columns on the inputs that were fitted, centred; they say how often each value occurs.
        test: The same on held-out inputs.
        left: What the other variables leave to explain there.
        total: The scatter of the stream itself: what is left is rounding if it is so much smaller.
    """
    _, _, directions = np.linalg.svd(fitted @ rows if len(rows) > len(fitted) else _root(fitted) @ rows)
    directions = directions[: min(rows.shape)]
    predicted, actual = test @ rows @ directions.T, left @ directions.T
    gains = (actual**2).sum(axis=0) - ((actual - predicted) ** 2).sum(axis=0)
    holds = gains > CLEAR * (actual**2).sum(axis=0)
    holds &= (actual**2).sum(axis=0) > np.finfo(np.float32).eps * total
    return directions[holds].T


def _root(fitted: np.ndarray) -> np.ndarray:
    """A square root of the covariance of some columns: a stand-in for the columns themselves, but small."""
    values, vectors = np.linalg.eigh(fitted.T @ fitted)
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
