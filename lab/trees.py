"""Decision trees grown on a model's answers: programs by behaviour alone. How many does `compare` refuse?

python -m lab.trees                                     the library, compiled
python -m lab.trees --sources natural --first 40        trained models
python -m lab.trees --write docs/explaining.md          puts the summary between the page's markers

A tree asks which token stands at a position, and at which position the answer is read. As a program, heads fetch
each token that is asked for; the rest is a choice after the other. It knows nothing of how the model does it.
"""

import argparse
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from lab.known_models import SOURCES, KnownModel, add_source_arguments, jobs_of
from lab.page import show
from lab.swept import swept
from rasplens.compare.config import Preset, get_config
from rasplens.compare.study import study_of
from rasplens.compare.subject.as_studied import as_studied_model
from rasplens.compare.subject.threads import few_threads
from rasplens.compare.verdict.verdict import IMPLEMENTS, NOT, PARTLY, UNKNOWN, judge
from rasplens.compile import rasp
from rasplens.compile.rasp import SOp
from rasplens.errors import RaspLensError
from rasplens.model import random_streams
from rasplens.sweeps.job import Row
from rasplens.tasks import Task, compile_for
from rasplens.tasks.task import NOT_ASKED, Ids

N_INPUTS = 2_000
"""Training inputs that a tree is grown on."""

MOST_LEAVES = 64
"""Of a tree: one with more is a table."""

NOTHING = "nothing"
"""Stands for the token at a position that is not visible."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_source_arguments(parser, "quick")
    arguments = parser.parse_args()
    show(summary(swept(jobs_of("lab.trees:rows", arguments), arguments)), arguments.write, "trees")


def rows(source: str, name: str, config: Preset, seed: int) -> Iterator[Row]:
    """For the first model of a name, how many of its answers a tree has, and the verdict on it."""
    try:
        for known in islice(SOURCES[source].models(name), 1):
            yield {"model": known.kind, **_judged(known, config, seed)}
    except RaspLensError as error:
        yield {"model": "–", "why": str(error).partition(". ")[0]}


def _judged(known: KnownModel, config: Preset, seed: int) -> Row:
    task = known.task
    ids = task.sample(random_streams.rng(seed, "explain"), N_INPUTS)
    with few_threads(known.model):
        given, held_out = (
            as_studied_model(known.model, task, some, known.vocabulary).answers() for some in (ids, task.held_out)
        )
    program, tree = tree_program(task, ids, given)
    right = tree.predict(_features(task, task.held_out)) == held_out.ravel()
    agreement = float(right[_asked(task, task.held_out)].mean())
    study = study_of(compile_for(task, program), known.model, task, get_config(config), seed, known.vocabulary)
    verdict = judge(study, seed)
    return {
        "leaves": int(tree.get_n_leaves()),
        "agreement": agreement,
        "verdict": verdict.answer,
        "why": " ".join(verdict.reasons[:1]),
    }


def tree_program(task: Task, ids: Ids, answers: np.ndarray) -> tuple[SOp, DecisionTreeClassifier]:
    """A tree that gives a model's answers on some inputs, and the program that says what it says.

    Args:
        task: The task.
        ids: The inputs.
        answers: The model's answers, `[input, answer]`, as the task's codes.
    """
    tree = DecisionTreeClassifier(max_leaf_nodes=MOST_LEAVES, random_state=0)
    asked = _asked(task, ids)
    tree.fit(_features(task, ids)[asked], answers.ravel()[asked])
    fetched: dict[int, SOp] = {}

    def at(place: int) -> SOp:
        if place not in fetched:
            there = rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == place)
            fetched[place] = rasp.Aggregate(there, rasp.tokens, default=NOTHING).named(f"at_{place}")
        return fetched[place]

    def said(node: int) -> SOp:
        feature, threshold = int(tree.tree_.feature[node]), float(tree.tree_.threshold[node])
        if feature < 0:
            code = int(tree.classes_[tree.tree_.value[node].argmax()])
            output = task.outputs[code] if code >= 0 else None
            return rasp.Map(lambda i: output, rasp.indices)
        low, high = said(int(tree.tree_.children_left[node])), said(int(tree.tree_.children_right[node]))
        if feature == task.n_ctx * len(task.vocab):
            condition = rasp.Map(lambda i: i > threshold, rasp.indices)
        else:
            place, token = divmod(feature, len(task.vocab))
            condition = rasp.Map(lambda x: x == task.vocab[token], at(place))
        return rasp.Where(condition, high, low)

    return said(0).named("tree"), tree


def _asked(task: Task, ids: Ids) -> np.ndarray:
    """Which answers the task asks for."""
    return np.asarray(task.target(ids).ravel() != NOT_ASKED)


def _features(task: Task, ids: Ids) -> np.ndarray:
    """For each answer, which token stands at each position that is visible, and where it is read."""
    places = list(task.loss_positions)
    tokens = np.eye(len(task.vocab))[ids][:, None] * task.visible[places][None, :, :, None]
    at = np.broadcast_to(np.array(places, dtype=float)[None, :, None], (len(ids), len(places), 1))
    return np.concatenate([tokens.reshape(len(ids), len(places), -1), at], axis=2).reshape(
        len(ids) * len(places), -1
    )


def summary(found: pd.DataFrame) -> str:
    """How many of the answers trees have, and what is said of them."""
    found = found.reindex(columns=list(dict.fromkeys([*found, "source", "model", "agreement", "verdict"])))
    return "\n\n".join(_counts(str(source), of) for source, of in found.groupby("source", sort=False))


def _counts(source: str, of: pd.DataFrame) -> str:
    judged = of[of["verdict"].notna()]
    by_verdict = judged["verdict"].value_counts()
    counts = ", ".join(f"{by_verdict.get(one, 0)} “{one}”" for one in (NOT, PARTLY, UNKNOWN, IMPLEMENTS))
    alike = judged[judged["agreement"] >= 0.99]
    refused = alike["verdict"].isin([NOT, PARTLY]).sum()
    return (
        f"`{source}`: trees for {len(judged)} of {len(of)} models have {judged['agreement'].median():.1%} of the "
        f"answers (median). Of them the verdict is {counts}. Of {len(alike)} that have at least 99 % of the "
        f"answers, {refused} are refused."
    )


if __name__ == "__main__":
    main()
