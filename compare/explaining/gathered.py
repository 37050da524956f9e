"""The values that heads gather, and the variables that they leave at the query."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.explaining.crossed import UNMET, Crossed
from rasplens.compare.explaining.heads import Group
from rasplens.compare.explaining.known import Inputs, Known, table_text
from rasplens.compare.explaining.sample import Sample
from rasplens.compare.explaining.selectors.grammar import Candidate
from rasplens.compare.explaining.selectors.tables import together
from rasplens.compare.explaining.selectors.tried import SAME
from rasplens.compile.rasp import Value

ENOUGH = 0.98
"""Share of the answers that stay, from which inputs that agree on some variables have the same values."""

MOST_SHARES = 8
"""Of a variable with more values, heads gather no share of each."""

STRAIGHT = 0.05
"""Value vectors lie on a line if their second singular value is at most this share of their first."""

DEPENDS = 0.95
"""Share of the variance of what heads carry from which a variable tells it."""

SIMPLEST = 4
"""Numbers along that line are fractions with denominators up to this."""

NOTHING = "nothing"
"""Stands for what is gathered where nothing is selected."""

WITH_DEFAULT = f", default={NOTHING!r}"


@dataclass(frozen=True, eq=False)
class Step:
    """A description of some heads.

    Attributes:
        group: The heads.
        selector: Where they look.
        made: The variables that they leave at the query.
        kept: The share of the answers that stay with values along all other edges from other inputs.
        untold: What the selector does not tell of their attention: bits, or of heads that count, a share.
    """

    group: Group
    selector: Candidate
    made: tuple[Known, ...]
    kept: float
    untold: float


def sufficient(
    crossed: Crossed, group: Group, selector: Candidate, known: Sequence[Known], rng: np.random.Generator
) -> tuple[Known, ...]:
    """The fewest variables that what heads gather depends on: values come from inputs that agree on them there.

    Empty if any values do, and their mean too: then only how many keys there are. The mean alone tells less:
    without what a head says, another one may say it. Values from any other input at the same position do where
    heads gather the position. Of variables that do, those that also tell the values where the sample is crossed.

    Args:
        crossed: The model, where what earlier heads leave comes from other inputs.
        group: The heads.
        selector: Where they look.
        known: The tokens, the positions, and then the other variables.
        rng: Of inputs that stand for one another.
    """
    place, carried = known[1], [known[0], *known[2:]]
    options = [(place,), *((one,) for one in carried), *combinations(carried, 2)]
    sample = crossed.sample
    edges = {group.layer: sample.edges_of(group.heads, selector.matrix)}
    enough: list[tuple[Known, ...]] = []
    without = min(sample.kept_with_mean_values(edges), sample.kept_with_values(edges, sample.sources[:1]))
    shares: list[tuple[float, tuple[Known, ...]]] = [(without, ())]
    for option in options if shares[0][0] < ENOUGH else []:
        shares.append((sample.kept_with_values(edges, [_alike(option, sample, rng)]), option))
        if shares[-1][0] >= ENOUGH:
            enough.append(option)
            if not crossed.made or _told_crossed(crossed, group, (place, *option)) >= DEPENDS:
                return option
    if enough:
        return enough[0]
    most = max(share for share, _ in shares)
    return next(option for share, option in shares if share >= most - SAME)


def _alike(option: Sequence[Known], sample: Sample, rng: np.random.Generator) -> Int[np.ndarray, "input pos"]:
    """For each input and position another input with the same values of some variables there."""
    n, n_pos = len(sample), sample.studied.n_pos
    key = np.zeros((n, n_pos), dtype=np.int64)
    for one in option:
        key = key * len(one.values) + one.codes
    found = np.empty((n, n_pos), dtype=np.int64)
    for position in range(n_pos):
        order = rng.permutation(n)
        order = order[np.argsort(key[order, position], kind="stable")]
        starts = np.flatnonzero(np.diff(key[order, position], prepend=-1))
        for members in np.split(order, starts[1:]):
            found[members, position] = np.roll(members, 1)
    return found


def made(
    sample: Sample, inputs: Inputs, group: Group, selector: Candidate, gathers: Sequence[Known]
) -> list[Known]:
    """The variables that a step leaves at the query; none if what it gathers has no simple mean.

    Args:
        sample: The model.
        inputs: The sample, as programs see it.
        group: The heads.
        selector: Where they look.
        gathers: What they gather; nothing for how many keys there are.
    """
    name = group.name
    if not gathers:
        return _defined(
            inputs.define(f"{name}_width", f"rasp.SelectorWidth({selector.text})", selector.reads, 2.0)
        )
    options = dict.fromkeys([tuple(_with_place(sample, inputs, group, selector, gathers)), tuple(gathers)])
    each = (_made_of(sample, inputs, group, selector, option) for option in options)
    return next((found for found in each if found), [])


def _made_of(
    sample: Sample, inputs: Inputs, group: Group, selector: Candidate, gathers: Sequence[Known]
) -> list[Known]:
    """The variables that gathered ones leave; none if one of them has no simple mean."""
    name = group.name
    found: list[Known] = []
    if len(gathers) > 1 and not any(_is_one_value(inputs, selector, one) for one in gathers):
        both = together(inputs, gathers)
        if both and _on_a_line(sample, group, both[0]) is not None:
            return list(_means(sample, inputs, group, selector, both[0], name))
    for one in gathers:
        own = name if len(gathers) == 1 else f"{name}_{one.name.removeprefix('rasp.')}"
        if _is_one_value(inputs, selector, one):
            carried = _told_apart(sample, inputs, group, one)
            needs = tuple(dict.fromkeys((*selector.reads, carried)))
            text = _aggregate(inputs, selector, carried)
            fetched = inputs.define(own, text, needs, carried.cost)
            if fetched is not None and (default := _like_nothing(sample, group, fetched)) is not None:
                said = text.replace(WITH_DEFAULT, f", default={default!r}")
                fetched = inputs.define(own, said, needs, carried.cost)
            found += _defined(fetched)
            continue
        means = list(_means(sample, inputs, group, selector, one, own))
        if not means:
            return []
        found += means
    return found


def _told_apart(sample: Sample, inputs: Inputs, group: Group, one: Known) -> Known:
    """A variable with one value for all that heads carry alike."""
    carried = _carried(sample, group)
    met = [code for code in range(1, len(one.values)) if (one.codes == code).any()]
    means = np.stack([carried[one.codes == code].mean(axis=0) for code in met])
    apart = np.linalg.norm(means[:, None] - means[None], axis=2)
    kept = list[int]()  # the first of each that differ
    stands_for = []
    for i in range(len(met)):
        alike = [first for first in kept if apart[i, first] <= STRAIGHT * apart.max()]
        kept += [] if alike else [i]
        stands_for.append(alike[0] if alike else i)
    if not 1 < len(kept) < len(met):
        return one
    entries: dict[tuple[object, ...], object] = {
        (one.values[code],): one.values[met[first]] for code, first in zip(met, stands_for, strict=True)
    }
    text = table_text(entries, one.values[met[0]], [one])
    name = f"{group.name}_{one.name.removeprefix('rasp.')}_values"
    return inputs.define(name, text, [one], 1.0) or one


def _with_place(
    sample: Sample, inputs: Inputs, group: Group, selector: Candidate, gathers: Sequence[Known]
) -> Sequence[Known]:
    """What heads gather, as one variable with its position where values also depend on that.

    Inputs that stand for one another do so at the same position. So the variable and the position together may
    count.
    """
    place = inputs.primitives()[1]
    if len(gathers) != 1 or gathers[0].name == place.name:
        return gathers
    both = together(inputs, (gathers[0], place))
    read = np.asarray(selector.matrix[:, group.rows].any(axis=1))
    told = [_told(sample, group, one, read) for one in (gathers[0], *both)]
    return both if both and told[0] < DEPENDS < told[1] else gathers


def _told(sample: Sample, group: Group, one: Known, read: Bool[np.ndarray, "input pos"]) -> float:
    """The share of the variance of what heads carry, where they read it, that a variable tells."""
    return _explained(_carried(sample, group)[read], one.codes[read])


def _told_crossed(crossed: Crossed, group: Group, option: Sequence[Known]) -> float:
    """The share of the variance of what heads carry on the sample crossed that variables tell together."""
    each = [crossed.codes(one) for one in option]
    if any(codes is None for codes in each):
        return 0.0
    studied = crossed.sample.studied
    values = crossed.of_heads(group.layer, "v")[:, studied.places][:, :, list(group.heads)]
    codes = np.stack([codes.ravel() for codes in each if codes is not None])
    met = (codes != UNMET).all(axis=0)
    together = np.unique(codes[:, met], axis=1, return_inverse=True)[1]
    return _explained(values.reshape(codes.shape[1], -1)[met], together.ravel())


def _explained(carried: Float[np.ndarray, "value width"], codes: Int[np.ndarray, " value"]) -> float:
    """The share of the variance of vectors that is between codes."""
    left = sum(
        float(((carried[codes == code] - carried[codes == code].mean(axis=0)) ** 2).sum())
        for code in np.unique(codes)
    )
    total = float(((carried - carried.mean(axis=0)) ** 2).sum())
    return 1 - left / total if total else 1.0


def _carried(sample: Sample, group: Group) -> Float[np.ndarray, "input pos width"]:
    """The values of some heads, side by side."""
    values = sample.studied.whole_values(group.layer)[:, sample.studied.places][:, :, list(group.heads)]
    return np.asarray(values.reshape(*values.shape[:2], -1))


def _defined(one: Known | None) -> list[Known]:
    return [] if one is None else [one]


def _is_one_value(inputs: Inputs, selector: Candidate, one: Known) -> bool:
    """Whether the keys of a row hardly ever have different values."""
    at = list(inputs.task.loss_positions)
    matrix = selector.matrix
    first = np.take_along_axis(one.codes, matrix.argmax(axis=2), axis=1)
    differs = (matrix & (one.codes[:, None, :] != first[:, :, None])).any(axis=2)
    return not differs[:, at].any() and float(differs.mean()) < 1 / len(inputs.ids)


def _like_nothing(sample: Sample, group: Group, one: Known) -> Value:
    """The default: the value of which heads leave what they leave where nothing is selected; None without one."""
    if NOTHING not in one.values:
        return None
    left = sample.studied.whole_gathered(group.layer)[:, sample.studied.places][:, :, list(group.heads)]
    left = left.reshape(*left.shape[:2], -1)
    means = {value: left[one.codes == code].mean(axis=0) for code, value in enumerate(one.values) if code}
    nothing = means.pop(NOTHING)
    apart = {value: float(np.linalg.norm(mean - nothing)) for value, mean in means.items()}
    nearest = min(apart, key=lambda value: apart[value])
    return nearest if apart[nearest] < STRAIGHT * max(apart.values()) else None


def _aggregate(inputs: Inputs, selector: Candidate, one: Known) -> str:
    asked = selector.matrix[:, list(inputs.task.loss_positions)]
    default = "" if asked.any(axis=2).all() else WITH_DEFAULT
    return f"rasp.Aggregate({selector.text}, {one.name}{default})"


def _means(
    sample: Sample, inputs: Inputs, group: Group, selector: Candidate, one: Known, name: str
) -> Iterator[Known]:
    """The mean of a variable's numbers; or of each value, which share of the keys has it."""
    numbers = _on_a_line(sample, group, one)
    if numbers is not None:
        text = _mean(selector, f"rasp.Map({numbers!r}.get, {one.name})")
        yield from _defined(inputs.define(f"{name}_mean", text, (*selector.reads, one), 2.0))
    elif len(one.own_values) <= MOST_SHARES:
        every = selector.matrix.any(axis=2).all()
        for i, value in enumerate(one.own_values[:-1] if every else one.own_values):
            text = _mean(selector, f"rasp.Map(lambda x: int(x == {value!r}), {one.name})")
            yield from _defined(inputs.define(f"{name}_share_{i}", text, (*selector.reads, one), 2.0))


def _mean(selector: Candidate, of: str) -> str:
    return f"rasp.numerical(rasp.Aggregate({selector.text}, rasp.numerical({of}), default=0))"


def _on_a_line(sample: Sample, group: Group, one: Known) -> dict[Value, int | float] | None:
    """Numbers for a variable's values, if what heads carry of them lies on a line: simple fractions in [0, 1]."""
    met = [code for code in range(1, len(one.values)) if (one.codes == code).any()]
    if len(met) < 3:
        return None
    carried = _carried(sample, group)
    table = np.stack([carried[one.codes == code].mean(axis=0) for code in met])
    left, sizes, _ = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    if (len(sizes) > 1 and sizes[1] > STRAIGHT * sizes[0]) or not sizes[0]:
        return None
    ends = np.linalg.norm(table[[left[:, 0].argmin(), left[:, 0].argmax()]], axis=1)
    along = left[:, 0] if ends[0] <= ends[1] else -left[:, 0]  # 0 is what nothing gathered is like
    along = (along - along.min()) / (along.max() - along.min())
    simple = [Fraction(float(number)).limit_denominator(SIMPLEST) for number in along]
    if max(abs(float(number) - there) for number, there in zip(simple, along, strict=True)) > STRAIGHT:
        return None
    return {
        one.values[code]: int(number) if number.denominator == 1 else float(number)
        for code, number in zip(met, simple, strict=True)
    }
