"""From a model to a program: search, judge on training inputs, confirm on held-out ones."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from jaxtyping import Bool
from sklearn.tree import DecisionTreeClassifier

from rasplens.compare.config import PRESETS, CompareConfig, Preset, get_config
from rasplens.compare.explaining.explanation import ExplainedBy, Explanation
from rasplens.compare.explaining.known import Inputs, program_source
from rasplens.compare.explaining.sample import Sample
from rasplens.compare.explaining.search import Found, programs
from rasplens.compare.study import study_of
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.subject.threads import few_threads
from rasplens.compare.subject.vocabulary import GivenVocabulary
from rasplens.compare.verdict.verdict import IMPLEMENTS, UNKNOWN, Verdict, judge
from rasplens.compile import CompiledModel
from rasplens.compile.rasp import SOp
from rasplens.compile.rasp.interpreter import expressions
from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.model.transformer import AnyModel
from rasplens.tasks import Task, as_task
from rasplens.tasks.compiling import compile_for
from rasplens.tasks.splits import held_out_by_hash
from rasplens.tasks.task import Ids

N_SAMPLE = 240
"""Inputs that the search looks at."""

MOST_JUDGED = 8
"""Programs that are judged, at most; intervals hold for all of them together."""

SEARCHED = 0.5
"""Share of the budget after which the search ends with what it has; the rest is for judging."""

LEAST_AGREEMENT = 0.9
"""A program that has fewer of the model's answers is not judged."""

Progress = Callable[[str], None]
"""Called with what is done next."""


@dataclass(frozen=True, eq=False)
class _Subject:
    """The model, and how programs are judged on it."""

    model: AnyModel
    task: Task
    vocabulary: GivenVocabulary | None
    seed: int

    def verdict(self, compiled: CompiledModel, config: CompareConfig, task: Task, seed: int) -> Verdict:
        together = replace(config, comparisons=MOST_JUDGED)
        return judge(study_of(compiled, self.model, task, together, seed, self.vocabulary), seed)


def explain(
    model: AnyModel,
    *,
    task: Task | str,
    budget: float = 60.0,
    config: CompareConfig | Preset = "standard",
    seed: int = 0,
    vocabulary: GivenVocabulary | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """Searches for the program that a model cannot be told from, and judges it on questions that it never saw.

    Heads are explained one after the other by interventions on a sample of training inputs. The programs that
    come of it are judged at `quick`, on training inputs too. One that is not refuted there, not even in part, is
    judged on held-out inputs.

    Args:
        model: As for `compare`.
        task: What it is asked.
        budget: Seconds after which no further program is judged; the search ends after half of them.
        config: How much the judgement on held-out inputs looks at. `quick` counts as `standard` there: of
            several programs with the model's answers, fewer questions would confirm a wrong one.
        seed: Of the inputs and of the questions.
        vocabulary: The model's vocabulary for the task, if it is not the task's own.
        progress: Called with each stage as it begins.

    Raises:
        RaspLensError: If the model does not fit the task, or the budget is not above zero.
    """
    if not budget > 0:
        raise RaspLensError(f"budget must be a number of seconds above 0; got {budget!r}.")
    began, task, begin = time.monotonic(), as_task(task), progress or (lambda stage: None)
    held_out, rng = _confirming(get_config(config)), random_streams.rng(seed, "explain")
    ids = task.sample(rng, N_SAMPLE)
    subject = _Subject(model, task, vocabulary, seed)
    begin("search")
    with few_threads(model):
        studied = as_studied_model(model, task, ids, vocabulary)
        sample = Sample(studied, [rng.permutation(len(ids)) for _ in range(2)])
        tried, ended = list[ExplainedBy](), ""
        for one in programs(sample, Inputs(task, ids), rng, until=began + SEARCHED * budget):
            if one.readout.agreement < LEAST_AGREEMENT:
                continue
            begin(f"program {len(tried) + 1}")
            tried += _judged(subject, sample, one, held_out)
            if ended := _why_enough(tried, budget, time.monotonic() - began):
                break
    seconds = time.monotonic() - began
    ended = ended or _why_enough(tried, budget, seconds) or _why_no_other(tried, seconds > SEARCHED * budget)
    return Explanation(task.name, tuple(tried), seconds, ended)


def _confirming(config: CompareConfig) -> CompareConfig:
    """The config, but for `quick`."""
    return PRESETS["standard"] if config == PRESETS["quick"] else config


def _why_enough(tried: Sequence[ExplainedBy], budget: float, seconds: float) -> str:
    """Why no further program is judged; empty if one is."""
    if any(one.answer == IMPLEMENTS for one in tried):
        return "a program was found"
    if seconds > budget:
        return f"the budget of {budget:g} seconds was used up"
    return f"no more than {MOST_JUDGED} are judged" if len(tried) == MOST_JUDGED else ""


def _why_no_other(tried: Sequence[ExplainedBy], is_cut: bool) -> str:
    """Why the search has come up with no other program."""
    if is_cut:
        return f"the search had its {SEARCHED:.0%} of the budget"
    return f"no {'further ' if tried else ''}program has {LEAST_AGREEMENT:.0%} of the model's answers"


def _judged(subject: _Subject, sample: Sample, one: Found, held_out: CompareConfig) -> Iterator[ExplainedBy]:
    """The program with its verdicts; nothing if it does not compile."""
    program, seed = one.readout.program, subject.seed
    source = program_source(program)
    try:
        compiled = compile_for(subject.task, _built(source))
    except RaspLensError:
        return
    first = subject.verdict(compiled, get_config("quick"), _on_training_inputs(subject.task), seed)
    confirmed = None
    if first.answer in (IMPLEMENTS, UNKNOWN):
        confirmed = subject.verdict(compiled, held_out, subject.task, seed + 1)
    n_nodes = len(list(expressions(program.expr)))
    agreement, table = one.readout.agreement, _agreement_of_a_table(sample, n_nodes)
    yield ExplainedBy(source, compiled, n_nodes, agreement, table, first, confirmed)


def _built(source: str) -> SOp:
    """The program that its text says: that is what is judged."""
    names: dict[str, Any] = {}
    exec(source, names)
    return cast(SOp, names["program"])


def _on_training_inputs(task: Task) -> Task:
    """The task, scored on some of its training inputs: what it holds out is not looked at."""

    def is_second(ids: Ids) -> Bool[np.ndarray, " batch"]:
        return held_out_by_hash(ids + len(task.vocab)) & ~task.is_held_out(ids)

    drawn = task.sample(np.random.default_rng(3), 8 * len(task.held_out))
    some = np.unique(drawn[is_second(drawn)], axis=0)[: len(task.held_out)]
    if not len(some):
        return task
    return replace(task, held_out=some, is_held_out=lambda ids: task.is_held_out(ids) | is_second(ids))


def _agreement_of_a_table(sample: Sample, n_leaves: int) -> float:
    """The share of the model's answers that a decision tree on tokens and positions has, on other inputs."""
    studied = sample.studied
    n, places = len(sample), np.array(studied.task.loss_positions)
    tokens = np.eye(len(studied.task.vocab))[studied.ids].reshape(n, 1, -1)
    at = np.broadcast_to(np.eye(studied.n_pos)[places][None], (n, len(places), studied.n_pos))
    read = np.concatenate([np.broadcast_to(tokens, (n, len(places), tokens.shape[2])), at], axis=2)
    asked, first = studied.asked, np.arange(n)[:, None] < n // 2
    tree = DecisionTreeClassifier(max_leaf_nodes=max(2, n_leaves), random_state=0)
    tree.fit(read[asked & first], sample.answers[asked & first])
    return float(tree.score(read[asked & ~first], sample.answers[asked & ~first]))
