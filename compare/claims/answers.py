"""The claims on answers: the model answers as the program does, on each kind of inputs, and each answer by itself.

On a task's own inputs several programs may be right. So models are also asked on inputs on which alternative
programs differ, and on inputs outside the task's distribution; what they answer there decides nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import binomtest

from rasplens.compare.claims.claim import Claim, Enumerated, Subject, untestable
from rasplens.compare.claims.class_by_class import failing_class
from rasplens.compare.claims.kind import ClaimKind, Evidence
from rasplens.compare.claims.trials.independent import Trials, one_of_each
from rasplens.compare.claims.trials.judging import (
    AT_LEAST,
    CONFIDENCE,
    FAILS,
    HOLDS,
    OPEN,
    Share,
    Status,
    least_trials,
    share,
)
from rasplens.compare.pairing.answered import AnsweredInputs
from rasplens.compare.pairing.inputs import all_inputs, enough_held_out, inputs_in_words
from rasplens.compare.pairing.pairing import Pairing, Side
from rasplens.compare.study import Study
from rasplens.compare.term import Term
from rasplens.model import random_streams
from rasplens.tasks.out_of_distribution import out_of_distribution_inputs
from rasplens.tasks.task import NO_ANSWER, NOT_ASKED, Ids

HELD_OUT = "held out"
"""Inputs of the task that nothing was trained on."""

ALL = "all inputs"
"""All inputs of a task that has only a few, where too few are held out; most of them are trained on."""

OUT_OF_DISTRIBUTION = "out of distribution"
"""Inputs that the task does not draw: what a model does there is reported, and decides nothing."""

ANSWERS_AGREE, ANSWERS_AT_LEAST = 0.95, 0.9
"""The share of answers that have to agree, and the least lower end of its interval; they do not agree if the upper
end is below the first."""

SUSPICIOUS = 0.1
"""On inputs too few to say that answers agree, nothing is said if as many disagree with more than this probability
in a model that does agree."""


@dataclass(frozen=True)
class AnswersOn(Subject):
    """The answers on one kind of inputs are the program's.

    Attributes:
        inputs: Which.
    """

    level = "answers"
    at_least = ANSWERS_AGREE
    at_most = float("nan")
    tested = "On inputs of this kind"

    inputs: str

    def __str__(self) -> str:
        return f"answers, {self.inputs}"


@dataclass(frozen=True)
class EachAnswer(Subject):
    """Each answer is given where the program gives it."""

    level = "answers"
    at_least = ANSWERS_AGREE
    at_most = float("nan")
    tested = "Where the program gives the answer on which the model agrees least"

    def __str__(self) -> str:
        return "answers, each of them"


@dataclass(frozen=True, eq=False)
class Behaviour:
    """How a learned model answers as the program does.

    Attributes:
        table: One row per kind of input: inputs (which), n, agreement (with the program), untrained (that of the
            control), right (by the task's own target; NaN where it says nothing of such inputs), undefined (the
            share of the answers asked for that the program does not have), exhaustive (whether there are no others
            of that kind).
        trials: By kind of input, whether the model agrees on one answer of each, drawn at random; of inputs that
            tell an alternative apart, of the answers that do.
        examples: By kind of input, one on which it does not, in words; none where it always does.
        by_answer: By answer of the program, as the task's codes, whether the model agrees on one such answer of
            each input that has any: of those that are drawn, and of others with rare answers.
        agrees: On the task's own held-out inputs and those that tell alternatives apart, the share of
            answers on which model and program agree, and the control's: `[2, input]`.
        everywhere: The answers on all inputs, where these are few enough.
    """

    table: pd.DataFrame
    trials: Mapping[str, Trials]
    examples: Mapping[str, str]
    by_answer: Mapping[int, Trials]
    agrees: Float[np.ndarray, "2 counted"]
    everywhere: Enumerated | None = None


def behaviour(study: Study, seed: int) -> Behaviour:
    """Agreement on the task's inputs, on those that tell alternatives apart, and out of distribution.

    Args:
        study: The models.
        seed: Of the out-of-distribution inputs.
    """
    task, pairing = study.task, study.scored
    rows, counted, trials, examples = [], [], dict[str, Trials](), dict[str, str]()
    draw = random_streams.rng(seed, "behaviour trials")
    everything = np.ones((1, len(task.loss_positions)), dtype=bool)
    whole = all_inputs(task)
    if whole is None or enough_held_out(task):
        kinds = {HELD_OUT: (pairing.ids[: pairing.n_drawn], everything)}
    else:
        kinds = {ALL: (whole, everything)}
    for name, found in study.distinguishing.items():
        if found.by == "answers":
            for end, which in (("", found.of_task), (f", {OUT_OF_DISTRIBUTION}", ~found.of_task)):
                kinds[f"against {name}{end}"] = found.ids[which], found.answers[which]
    others = random_streams.rng(seed, "out-of-distribution inputs")
    ood = out_of_distribution_inputs(task, others, min(300, pairing.n_inputs))
    kinds[OUT_OF_DISTRIBUTION] = ood, everything
    for kind, (ids, tell) in kinds.items():
        if not len(ids):
            continue
        said = _given(pairing, "reference", ids)
        # Where the task asks, no answer is one as well; elsewhere a program need not be defined.
        asked = said != NOT_ASKED if not kind.endswith(OUT_OF_DISTRIBUTION) else said >= 0
        given = _given(pairing, "learned", ids)
        agrees = np.stack([(one == said) & asked for one in (given, _given(pairing, "untrained", ids))])
        share = agrees.sum(axis=2) / np.maximum(1, asked.sum(axis=1))
        share = share[:, asked.any(axis=1)]
        if not share.shape[1]:
            continue
        undefined = float((said == NO_ANSWER)[asked].mean())
        right = float(task.right(given, ids).mean()) if kind in (HELD_OUT, ALL) else float("nan")
        exhaustive = kind == ALL or (kind == HELD_OUT and len(ids) == len(task.held_out))
        rows.append((kind, share.shape[1], *share.mean(axis=1), right, undefined, exhaustive))
        inputs = AnsweredInputs(task, ids, said, len(ids))
        trials[kind] = one_of_each(inputs, np.arange(len(ids)), agrees[0], asked & tell, draw)
        if (differs := asked & tell & ~agrees[0]).any():
            examples[kind] = _example(inputs, given, *np.argwhere(differs)[0].tolist())
        if not kind.endswith(OUT_OF_DISTRIBUTION) and kind != ALL:
            counted.append(share)
    columns = ["inputs", "n", "agreement", "untrained", "right", "undefined", "exhaustive"]
    table = pd.DataFrame(rows, columns=columns)
    agreement = np.concatenate([np.zeros((2, 0)), *counted], axis=1)
    by_answer = _by_answer(pairing, whole, draw)
    return Behaviour(table, trials, examples, by_answer, agreement, _everywhere(study.whole))


def _example(inputs: AnsweredInputs, given: Int[np.ndarray, "input answer"], row: int, answer: int) -> str:
    """An input on which a model answers otherwise than the program, in words."""
    task = inputs.task
    tokens = " ".join(map(str, task.sequences(inputs.ids[row : row + 1])[0]))
    ours, theirs = (task.answer_name(int(one[row, answer])) for one in (inputs.answers, given))
    return f"on {tokens!r} the program answers {ours}, the model {theirs}"


def _given(pairing: Pairing, side: Side, ids: Ids) -> Int[np.ndarray, "input answer"]:
    """One side's answers on inputs; on the pairing's own ones they are known."""
    studied = getattr(pairing, side)
    if ids is pairing.ids or (len(ids) == pairing.n_drawn and ids.base is pairing.ids):
        return studied.answers()[: len(ids)]
    return studied.on(ids).answers()


def _by_answer(pairing: Pairing, whole: Ids | None, draw: np.random.Generator) -> dict[int, Trials]:
    ids = pairing.ids if whole is None else whole
    said, given = _given(pairing, "reference", ids), _given(pairing, "learned", ids)
    codes = np.unique(said[said >= 0]).tolist()
    inputs, rows = AnsweredInputs(pairing.task, ids, said, len(ids)), np.arange(len(ids))
    return {code: one_of_each(inputs, rows, given == said, said == code, draw) for code in codes}


def _claims(study: Study, evidence: Evidence, rng: np.random.Generator) -> list[Claim]:
    behaved = evidence.of(ANSWERS)
    claims = list(_on_inputs(behaved, study))
    if all(claim.status != FAILS for claim in claims):
        claims += _each_answer(behaved, study)
    everywhere = behaved.everywhere
    if everywhere is None:
        return claims
    of_the_task = AnswersOn(HELD_OUT), AnswersOn(ALL), EachAnswer()
    return [claim.on_all(everywhere) if claim.subject in of_the_task else claim for claim in claims]


def _everywhere(whole: Pairing | None) -> Enumerated | None:
    if whole is None:
        return None
    said, given = whole.reference.answers(), whole.learned.answers()
    differs = (said != given) & (said != NOT_ASKED)
    example = _example(whole.answered, given, *np.argwhere(differs)[0].tolist()) if differs.any() else ""
    inputs = f"all {whole.n_inputs:,} {inputs_in_words(whole.task, whole.ids)}"
    return Enumerated(inputs, whole.n_inputs, int(differs.any(axis=1).sum()), example)


def _on_inputs(behaved: Behaviour, study: Study) -> Iterator[Claim]:
    comparisons = study.config.comparisons
    for row in behaved.table.itertuples():
        if row.inputs.endswith(OUT_OF_DISTRIBUTION):
            continue
        subject, trials = AnswersOn(row.inputs), behaved.trials[row.inputs]
        agrees = trials.right
        found = share(trials, comparisons)
        if row.exhaustive:  # all answers of all inputs there are: nothing is left to chance
            found = Share(row.agreement, row.agreement, row.agreement, row.n)
        status: Status = OPEN
        by_chance = binomtest(int(agrees.sum()), len(agrees), ANSWERS_AGREE, alternative="less").pvalue
        if found.high < ANSWERS_AGREE and (row.exhaustive or by_chance < (1 - CONFIDENCE) / 2 / comparisons):
            status = FAILS
        elif found.score >= ANSWERS_AGREE and found.low >= ANSWERS_AT_LEAST:
            status = HOLDS
        elif (
            row.inputs != HELD_OUT
            and found.n < least_trials(ANSWERS_AT_LEAST, comparisons)
            and by_chance > SUSPICIOUS
        ):
            yield untestable(subject, f"there are only {found.n} such inputs")
            continue
        of_kind = "held-out inputs" if row.inputs == HELD_OUT else "inputs"
        which = f"all {found.n} {of_kind} there are" if row.exhaustive else f"{found.n} inputs"
        missing = f"; it has none of the task's for {row.undefined:.0%}" if row.undefined else ""
        reason = f"agreement with the program's answers on {which}{missing}"
        example, ends = behaved.examples.get(row.inputs, ""), (found.score, found.low, found.high)
        whole = Claim(subject, status, *ends, row.untrained, found.n, True, reason, counterexample=example)
        in_class = failing_class(trials, comparisons)
        if in_class is not None and in_class.elsewhere.score >= ANSWERS_AGREE:
            inside = in_class.claim(whole)  # its figures stay those of all inputs
            whole = replace(whole, status=inside.status, reason=inside.reason, except_where=inside.except_where)
        yield whole


def _each_answer(behaved: Behaviour, study: Study) -> Iterator[Claim]:
    """A program that is seldom True is nearly right if it never is: so each of its answers is asked for by itself.

    The claim fails if one answer does, and is open if one is given suspiciously seldom.
    """
    if len(behaved.by_answer) < 2:
        return
    at_once = study.config.comparisons * len(behaved.by_answer)
    found = {code: share(agrees, at_once) for code, agrees in behaved.by_answer.items()}
    code, least = min(found.items(), key=lambda one: (one[1].high, one[1].score))
    by_chance = binomtest(round(least.score * least.n), least.n, ANSWERS_AGREE, alternative="less").pvalue
    status: Status = HOLDS
    if least.high < AT_LEAST:
        status = FAILS
    elif by_chance < SUSPICIOUS / len(found):
        status = OPEN
    answer = study.task.outputs[code]
    reason = f"worst where the program's answer is {answer!r}: agreement on {least.n} inputs that have it"
    ends = least.score, least.low, least.high
    yield Claim(EachAnswer(), status, *ends, float("nan"), least.n, False, reason)


TERMS = (
    Term(
        "distinguishing inputs",
        "Inputs on which alternative programs differ in their answers, or in what they read.",
        "claims.answers",
    ),
    Term(
        "out-of-distribution inputs",
        "Inputs in the task's layout whose tokens are drawn independently.",
        "claims.answers",
    ),
    Term(
        "behaviour",
        "The axis of answers: the share on which model and program agree.",
        "claims.answers",
        ("behaviour", "agreement"),
    ),
    Term(
        "exhaustive",
        "Whether the inputs asked are all that there are of that kind: then nothing is left to chance.",
        "claims.answers",
        ("exhaustive",),
    ),
    Term(
        "undefined",
        "The share of the answers asked for that the program does not have: a model that has one does not agree.",
        "claims.answers",
        ("undefined",),
    ),
    Term("right", "The share of answers that are the task's own target.", "claims.answers", ("right",)),
)

ANSWERS = ClaimKind(
    name="answers",
    subjects=(AnswersOn, EachAnswer),
    test=lambda study, evidence, seed: behaviour(study, seed),
    claims=_claims,
    tables=lambda behaved: {"behaviour": behaved.table},
    terms=TERMS,
)
