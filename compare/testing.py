"""Assertions about circuits, for unit tests: what a model does inside, claimed in one line and checked.

Every message shows the evidence, with its controls. A claim that fails is an AssertionError; one that makes no
sense, such as of a head that does not exist, a ValueError.

All assertions share these parameters:
    model: Anything that `compare` takes as a learned model.
    program: An s-op, a `CompiledModel`, or the name of one of the task's programs.
    task: What the model is asked, or its name.
    config: How much to look at; for most assertions the number of held-out inputs.
    seed: Of the choice of inputs and of the controls.
    vocabulary: The model's vocabulary for the task, if it is not the task's own.
"""

# ruff: noqa: D417 - the parameters that all assertions share are documented once, above

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from rasplens.compare.axes import Axis, above
from rasplens.compare.config import CompareConfig
from rasplens.compare.evidence.ablation.edges import edge_effects
from rasplens.compare.evidence.ablation.measurement import METHODS
from rasplens.compare.evidence.subspaces.decodability import CONTROLS, best_points, decodability
from rasplens.compare.experiments.reach import reaching_edges
from rasplens.compare.pairing.reference import reference_of
from rasplens.compare.pipeline import compare
from rasplens.compare.study import study_of
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.subject.studied_model import StudiedModel
from rasplens.compare.subject.vocabulary import GivenVocabulary
from rasplens.compare.verdict.verdict import IMPLEMENTS
from rasplens.compile import UndefinedValue, run
from rasplens.compile.rasp import Selector, SOp, Value
from rasplens.errors import RaspLensError
from rasplens.model.transformer import AnyModel
from rasplens.tasks import Task, as_task
from rasplens.tasks.compiling import AnyProgram

CONFIG = CompareConfig(n_inputs=300)
"""The default config of most assertions."""

EDGE_CONFIG = CompareConfig(n_inputs=100)
"""The default config of assertions on edges: edges are ablated one by one, so it has fewer inputs."""

SHOWN = 5
"""Number of edges that a message lists."""

Rule = Selector | Callable[[int, int, Sequence[Value]], bool] | Callable[[int, int], bool]
"""The rule that a head should attend by: a selector, or a function of key position, query position and,
optionally, the tokens."""

Position = int | str
"""One of a task's positions, by its place or its name."""


def assert_implements(
    program: AnyProgram,
    model: AnyModel,
    task: Task | str,
    *,
    at_least: float = 0.0,
    config: CompareConfig = CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> None:
    """Asserts that a model implements a program, by the verdict of `compare`.

    Args:
        at_least: What every axis that has a score must reach besides.

    Raises:
        AssertionError: If the verdict is another, or an axis scores less; with all the evidence.
        RaspLensError: If the model or the program does not fit the task.
    """
    __tracebackhide__ = True
    task = as_task(task)
    _check_share("at_least", at_least)
    found = compare(reference_of(program, task), model, task=task, config=config, seed=seed, vocabulary=vocabulary)
    low = [axis.name for axis in found.axes if axis.has_score and axis.score < at_least]
    if found.verdict.answer == IMPLEMENTS and not low:
        return
    lines = [f"Does the model implement {found.program!r} of task {task.name!r}? The verdict: {found.verdict}."]
    if low:
        lines.append(f"Below at_least={at_least}: {', '.join(low)}.")
    lines += [f"  {reason}" for reason in found.verdict.reasons]
    lines += [_line(axis) for axis in found.axes]
    raise AssertionError("\n".join(lines))


def assert_head_attends(
    model: AnyModel,
    layer: int,
    head: int,
    rule: Rule,
    task: Task | str,
    *,
    queries: Sequence[Position] | None = None,
    at_least: float = 0.9,
    config: CompareConfig = CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> None:
    """Asserts that a head attends to the keys that a rule selects.

    The score is the mean attention on selected keys, over rows where the rule selects something, and not
    everything that the task lets the row see. Chance is the share of the visible keys that it selects there.

    Args:
        layer: The head's layer.
        head: Its index there.
        rule: A selector, or a function that says of a key's position and a query's, and of the tokens if it takes
            a third argument, whether the query is to attend to the key.
        queries: The positions that are to attend so; by default all.
        at_least: The least score; it has to be above chance too.

    Raises:
        AssertionError: If the head does not attend so; with score, chance and the worst row.
        RaspLensError: If there is no such head or position, or the rule says nothing on these inputs.
        TypeError: If the rule is neither a selector nor a function.
    """
    __tracebackhide__ = True
    task = as_task(task)
    _check_share("at_least", at_least)
    studied = _studied(model, task, config, seed, vocabulary)
    if (layer, head) not in studied.heads:
        known = ", ".join(f"L{of_layer}H{index}" for of_layer, index in studied.heads)
        raise RaspLensError(f"No head L{layer}H{head} computes anything in this model; its heads are {known}.")
    selected = _selected(rule, studied)
    asked = np.ones(task.n_ctx, dtype=bool)
    if queries is not None:
        asked = np.isin(np.arange(task.n_ctx), [task.place(query) for query in queries])
    rows = selected.any(axis=2) & (selected != task.visible).any(axis=2) & asked
    if not rows.any():
        raise RaspLensError(
            "The rule selects none or all of the visible keys in every row of these inputs, so it claims nothing."
        )
    pattern = studied.pattern(layer)[:, head].astype(np.float64)
    mass = (pattern * selected).sum(axis=2)
    score = float(mass[rows].mean())
    chance = float((selected.sum(axis=2) / np.maximum(1, task.visible.sum(axis=1)))[rows].mean())
    if score >= at_least and score > chance:
        return
    worst, query = np.unravel_index(np.where(rows, mass, np.inf).argmin(), mass.shape)
    (tokens,) = task.sequences(studied.ids[worst : worst + 1])
    most = int(pattern[worst, query].argmax())
    wanted = ", ".join(_named(task, key, tokens) for key in np.flatnonzero(selected[worst, query]).tolist())
    raise AssertionError(
        f"L{layer}H{head} puts {score:.3f} of its attention on the keys that the rule selects; expected "
        f"at_least={at_least} and above chance, {chance:.3f}.\n"
        f"  rows: {int(rows.sum())} on {studied.n_inputs} inputs\n"
        f"  worst input: {' '.join(map(str, tokens))}\n"
        f"  worst row: query {_named(task, int(query), tokens)} puts {mass[worst, query]:.3f} on {wanted}; most, "
        f"{pattern[worst, query, most]:.3f}, is on {_named(task, most, tokens)}"
    )


def assert_variable_encoded(
    program: AnyProgram,
    model: AnyModel,
    variable: str,
    task: Task | str,
    *,
    point: str | None = None,
    position: Position | None = None,
    at_least: float = 0.9,
    config: CompareConfig = CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> None:
    """Asserts that a variable of a program can be read off a model's residual stream by a linear probe.

    The score is the probe's on held-out inputs, on the scale from its best control (0) to right (1).

    Args:
        variable: The name of one of its s-ops.
        point: The hook point; by default the best one, chosen on other inputs.
        position: The position; by default all at which the variable reaches an answer, their mean.
        at_least: The least score.

    Raises:
        AssertionError: If the variable is not encoded so; with the scores and controls at every hook point.
        RaspLensError: If there is no such variable, hook point or position, or nothing to be decoded there.
    """
    __tracebackhide__ = True
    task = as_task(task)
    _check_share("at_least", at_least)
    compiled = reference_of(program, task)
    known = [name for name, one in compiled.variables.items() if not one.is_auxiliary]
    if variable not in known:
        raise RaspLensError(
            f"{compiled.output!r} has no variable {variable!r}; it has {', '.join(map(repr, known))}."
        )
    place = None if position is None else task.place(position)
    study = study_of(compiled, model, task, config, seed, vocabulary)
    if point is not None and point not in study.learned.residual_points:
        points = ", ".join(study.learned.residual_points)
        raise RaspLensError(f"The model's residual stream has no hook point {point!r}; it has {points}.")
    table = decodability(study, seed).table
    table = table[table["variable"] == variable]
    places = [task.positions[i] for i in sorted(set(table["position"]))]
    if place is not None:
        table = table[table["position"] == place]
    if table.empty:
        what = "any position" if place is None else f"position {task.positions[place]}"
        where = f" Choose among {', '.join(places)}." if places else ""
        raise RaspLensError(f"{variable!r} does not vary, or reaches no answer, at {what}.{where}")
    means = table.groupby("point", sort=False)[["score", *CONTROLS]].mean()
    means["above"] = above(means["score"], means[list(CONTROLS)].max(axis=1))
    best = str(best_points(table)["point"].item())
    score = float(means.loc[point or best, "above"])
    if score >= at_least:
        return
    at = ", ".join(places) if place is None else task.positions[place]
    raise AssertionError(
        f"{variable!r} is not encoded at {point or best}: the probe scores {score:.3f} between the best control "
        f"(0) and always right (1); expected at_least={at_least}.\n"
        f"Held-out {table['measure'].iloc[0]}, the mean over the positions ({at}); best at {best}:\n"
        f"{_shown(means)}"
    )


def assert_edge_critical(
    model: AnyModel,
    layer: int,
    query: Position,
    key: Position,
    task: Task | str,
    *,
    at_least: float = 0.01,
    config: CompareConfig = EDGE_CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> None:
    """Asserts that an attention edge is critical: zero-ablating it drops token accuracy.

    The edge is that of all heads of the layer together, see `rasplens.compare.evidence.ablation.effects`.

    Args:
        layer: The edge's layer.
        query: The position that attends, by its place or its name.
        key: The one attended to.
        at_least: The least accuracy drop.

    Raises:
        AssertionError: If accuracy drops by less; with the effects by every method, and the most critical edges.
        RaspLensError: If there is no such layer or edge.
    """
    __tracebackhide__ = True
    task = as_task(task)
    _check_share("at_least", at_least)
    studied = _studied(model, task, config, seed, vocabulary)
    drop, evidence = _without_edge(studied, layer, query, key, config, seed)
    if drop < at_least:
        raise AssertionError(f"{evidence[0]}, less than at_least={at_least}.\n{evidence[1]}")


def assert_edge_not_critical(
    model: AnyModel,
    layer: int,
    query: Position,
    key: Position,
    task: Task | str,
    *,
    at_most: float = 0.01,
    config: CompareConfig = EDGE_CONFIG,
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
) -> None:
    """Asserts that an attention edge is not critical; see `assert_edge_critical`.

    Args:
        layer: The edge's layer.
        query: The position that attends, by its place or its name.
        key: The one attended to.
        at_most: The largest accuracy drop.

    Raises:
        AssertionError: If accuracy drops by more; with the effects by every method, and the most critical edges.
        RaspLensError: If there is no such layer or edge.
    """
    __tracebackhide__ = True
    task = as_task(task)
    _check_share("at_most", at_most)
    studied = _studied(model, task, config, seed, vocabulary)
    drop, evidence = _without_edge(studied, layer, query, key, config, seed)
    if drop > at_most:
        raise AssertionError(f"{evidence[0]}, more than at_most={at_most}.\n{evidence[1]}")


def _without_edge(
    studied: StudiedModel, layer: int, query: Position, key: Position, config: CompareConfig, seed: int
) -> tuple[float, tuple[str, str]]:
    """The accuracy drop of zero-ablating an edge, and how a message begins and goes on."""
    task = studied.task
    if not 0 <= layer < studied.n_layers:
        raise RaspLensError(f"The model has no layer {layer}; its layers are 0 to {studied.n_layers - 1}.")
    at, to = task.place(query), task.place(key)
    if not task.visible[at, to]:
        raise RaspLensError(
            f"Position {task.positions[at]} does not see {task.positions[to]}: there is no such edge."
        )
    if not reaching_edges(studied, "values")[layer, at, to]:
        raise RaspLensError(
            f"No answer can depend on the edge {_edge_name(task, layer, at, to)}: no head of the layer computes "
            f"anything, or nothing reads {task.positions[at]} after it. The assertion would claim nothing."
        )
    # As many inputs as were asked for, whatever the number of answers.
    table = edge_effects(
        studied, replace(config, edge_answers=config.n_inputs * studied.targets.shape[1]), seed
    ).table
    table = table.set_index(["layer", "query", "key"])[["attention", *METHODS]].sort_values(
        "zero", ascending=False
    )
    table.index = pd.Index([_edge_name(task, *edge) for edge in table.index])
    name = _edge_name(task, layer, at, to)
    if name not in table.index:  # it gets no attention on any input: taking it away changes nothing
        table.loc[name] = 0.0
    drop = float(table.loc[name, "zero"])
    shown = table.loc[list(dict.fromkeys([name, *table.index[:SHOWN]]))]
    right = float(studied.right().mean())
    return drop, (
        f"Without the edge {name}, token accuracy drops by {drop:.3f}",
        f"Of all answers {right:.3f} are right. Mean attention, and the accuracy drop by each ablation method, of "
        f"this edge and the most critical ones:\n{_shown(shown)}",
    )


def _edge_name(task: Task, layer: int, query: int, key: int) -> str:
    return f"L{layer} {task.positions[query]}→{task.positions[key]}"


def _studied(
    model: AnyModel, task: Task, config: CompareConfig, seed: int, vocabulary: GivenVocabulary | None
) -> StudiedModel:
    """A model on held-out inputs."""
    rows = np.random.default_rng(seed).permutation(len(task.held_out))[: config.n_inputs]
    return as_studied_model(model, task, task.held_out[rows], vocabulary)


def _selected(rule: Rule, studied: StudiedModel) -> Bool[np.ndarray, "input query key"]:
    """Return the keys that a rule selects, of those the task lets each query see; none where it is undefined."""
    task = studied.task
    if not (isinstance(rule, Selector) or (callable(rule) and not isinstance(rule, SOp))):
        raise TypeError(f"The rule must be a selector or a function of key, query and tokens; got {rule!r}.")
    takes = 0 if isinstance(rule, Selector) else _arguments(rule)
    selected = np.zeros((studied.n_inputs, task.n_ctx, task.n_ctx), dtype=bool)
    for matrix, tokens in zip(selected, task.sequences(studied.ids), strict=True):
        if isinstance(rule, Selector):
            try:
                matrix[:] = run(rule, tokens, mask=task.visible)
            except UndefinedValue:
                continue
        else:
            for query, key in np.argwhere(task.visible).tolist():
                arguments: tuple[Any, ...] = (key, query, tokens)
                matrix[query, key] = bool(rule(*arguments[:takes]))
    return selected & task.visible


def _arguments(rule: Callable[..., Any]) -> int:
    """How many arguments a rule takes: two or three."""
    try:
        parameters = signature(rule)
    except ValueError:  # a function of C that does not say
        return 3
    for n in (3, 2):
        with suppress(TypeError):
            parameters.bind(*range(n))
            return n
    raise RaspLensError(
        f"The rule has parameters {parameters}; it is called with key, query and, optionally, tokens."
    )


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise RaspLensError(f"{name} must be between 0 and 1; got {value}.")


def _named(task: Task, position: int, tokens: Sequence[Value]) -> str:
    return f"{task.positions[position]} ({tokens[position]})"


def _line(axis: Axis) -> str:
    scores = f"{axis.score:.2f} ({axis.low:.2f} to {axis.high:.2f})" if axis.has_score else "no score"
    return f"  {axis.name}: {scores}: {axis.note}"


def _shown(table: pd.DataFrame) -> str:
    return table.to_string(index_names=False, float_format="{:.3f}".format)
