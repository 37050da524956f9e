"""The claims of a program from the evidence: on its answers, its variables and its routes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import binomtest

from rasplens.compare.evidence.behaviour import HELD_OUT, OUT_OF_DISTRIBUTION, Behaviour
from rasplens.compare.evidence.collection import CausalTests
from rasplens.compare.evidence.interchange.accuracy import Interchange
from rasplens.compare.evidence.interchange.joint import JointInterchange
from rasplens.compare.evidence.interchange.joint_pairs import JointPairs
from rasplens.compare.evidence.interchange.pairs import intermediate_variables, why_not_interchangeable
from rasplens.compare.evidence.routes.attended import Attended
from rasplens.compare.evidence.routes.questions import COUNTED, KEYS, QUERIES, UNREAD
from rasplens.compare.evidence.trials import one_of_each
from rasplens.compare.models.pairing import Pairing
from rasplens.compare.verdict.claims import (
    AT_LEAST,
    AT_MOST,
    CONFIDENCE,
    FAILS,
    HOLDS,
    OPEN,
    UNTESTABLE,
    Claim,
    Share,
    Status,
    judged,
    judged_by_trials,
    least_trials,
    share,
    untestable,
)
from rasplens.model import random_streams

ANSWERS_AGREE, ANSWERS_AT_LEAST = 0.95, 0.9
"""The share of answers that have to agree, and the least lower end of its interval; they do not agree if the upper
end is below the first."""

SUSPICIOUS = 0.1
"""On inputs too few to say that answers agree, nothing is said if as many disagree with more than this probability
in a model that does agree."""


def program_claims(
    pairing: Pairing,
    found: CausalTests,
    seed: int,
) -> tuple[Claim, ...]:
    """Every claim that a program makes of a model, with its status.

    Args:
        pairing: The models.
        found: The tests of it.
        seed: Of which answer of a pair counts.
    """
    rng = random_streams.rng(seed, "claims")
    variables = _variables(pairing, found.interchanged, rng)
    joint = _joint(pairing, found.joint, rng)
    answers = list(_answers(found.behaviour, pairing))
    if all(claim.status != FAILS for claim in answers):
        answers += _each_answer(found.behaviour, pairing)
    return (*answers, *variables, *joint, *_routes(pairing, found, rng))


def _answers(behaved: Behaviour, pairing: Pairing) -> Iterator[Claim]:
    comparisons = pairing.config.comparisons
    for row in behaved.table.itertuples():
        if row.inputs.endswith(OUT_OF_DISTRIBUTION):
            continue
        claim, agrees = f"answers, {row.inputs}", behaved.trials[row.inputs]
        found = share(agrees, comparisons)
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
            yield untestable(claim, "answers", f"there are only {found.n} such inputs")
            continue
        of_kind = "held-out inputs" if row.inputs == HELD_OUT else "inputs"
        which = f"all {found.n} {of_kind} there are" if row.exhaustive else f"{found.n} inputs"
        missing = f"; it has none of the task's for {row.undefined:.0%}" if row.undefined else ""
        reason = f"agreement with the program's answers on {which}{missing}"
        ends = found.score, found.low, found.high
        yield Claim(claim, "answers", status, *ends, row.untrained, found.n, True, reason)


def _each_answer(behaved: Behaviour, pairing: Pairing) -> Iterator[Claim]:
    """A program that is seldom True is nearly right if it never is: so each of its answers is asked for by itself.

    The claim fails if one answer does, and is open if one is given suspiciously seldom.
    """
    if len(behaved.by_answer) < 2:
        return
    at_once = pairing.config.comparisons * len(behaved.by_answer)
    found = {code: share(agrees, at_once) for code, agrees in behaved.by_answer.items()}
    code, least = min(found.items(), key=lambda one: (one[1].high, one[1].score))
    by_chance = binomtest(round(least.score * least.n), least.n, ANSWERS_AGREE, alternative="less").pvalue
    status: Status = HOLDS
    if least.high < AT_LEAST:
        status = FAILS
    elif by_chance < SUSPICIOUS / len(found):
        status = OPEN
    answer = pairing.task.outputs[code]
    reason = f"worst where the program's answer is {answer!r}: agreement on {least.n} inputs that have it"
    ends = least.score, least.low, least.high
    yield Claim("answers, each of them", "answers", status, *ends, float("nan"), least.n, False, reason)


def _variables(pairing: Pairing, interchanged: Sequence[Interchange], rng: np.random.Generator) -> Iterator[Claim]:
    by_name = {one.variable: one for one in interchanged}
    for name in intermediate_variables(pairing):
        if name in by_name:
            yield _variable(by_name[name], rng, pairing.config.comparisons)
        else:
            yield untestable(f"variable {name}", "variables", why_not_interchangeable(pairing, name))


def _variable(one: Interchange, rng: np.random.Generator, comparisons: int) -> Claim:
    claim, where = (
        f"variable {one.variable}",
        f"interchanged at {one.point} ({one.method}, rank {one.rank:.0f})",
    )
    changes = one.pairs.changes
    trials = [one_of_each(one.accuracy.right, which, rng) for which in (changes, one.pairs.stays)]
    if one.method != "component":
        trials.append(one_of_each(one.active.right, changes, rng))
    found = judged_by_trials(claim, "variables", trials, one.control, True, where, comparisons)
    if found.status == HOLDS and one.control >= AT_LEAST:
        return untestable(claim, "variables", f"{where}: a control does as well ({one.control:.2f})")
    if found.status in (HOLDS, UNTESTABLE):
        return found
    if _known_share(one.ceiling, one.n_ceiling, comparisons).low < AT_LEAST:
        why = f"{where}: the search finds it not even in the compiled model ({one.ceiling:.2f})"
        return untestable(claim, "variables", why)
    # That a search fails on other pairs than its own says that it had too few, not that there is nothing.
    fitted = _known_share(one.site.fitted, len(one.pairs.base), comparisons)
    fails = fitted.high < AT_MOST and judged([fitted]) == FAILS
    reason = f"{where}: the search reaches {one.site.fitted:.2f} on its own pairs, {found.score:.2f} on others"
    status: Status = FAILS if fails else OPEN
    return Claim(
        claim, "variables", status, found.score, found.low, found.high, one.control, found.n, True, reason
    )


def _known_share(score: float, n: int, comparisons: int) -> Share:
    """The interval of a score of which only the number of trials is known."""
    return share(np.arange(n) < round(score * n), comparisons)


def _joint(pairing: Pairing, found: Sequence[JointInterchange], rng: np.random.Generator) -> Iterator[Claim]:
    comparisons = pairing.config.comparisons
    for one in found:
        claim = f"variables {' and '.join(one.variables)} together"
        where = f"interchanged at {' and '.join(one.points)}"

        def judge(
            right: np.ndarray, claim: str = claim, where: str = where, pairs: JointPairs = one.pairs
        ) -> Claim:
            trials = [one_of_each(right, which, rng) for which in (pairs.by_first, pairs.by_second)]
            return judged_by_trials(claim, "variables", trials, float("nan"), True, where, comparisons)

        own = judge(one.right)
        if own.status in (FAILS, OPEN) and one.ceiling is not None and judge(one.ceiling).status != HOLDS:
            yield untestable(claim, "variables", f"{where}: not even the compiled model does as the program says")
        else:
            yield own


SAID = {
    UNREAD: "nothing is gathered along other edges",
    KEYS: "keys decide as in the program",
    QUERIES: "queries decide as in the program",
    COUNTED: "the edges that are counted are those of the program",
}


def _routes(pairing: Pairing, found: CausalTests, rng: np.random.Generator) -> Iterator[Claim]:
    tests, why_none = found.routes
    if why_none:
        yield untestable("routes", "routes", why_none)
    if pairing.as_part:
        yield untestable(SAID[UNREAD], "routes", "left open: the program is compared as a part of the model")
    gathered, needed = set[str](), least_trials(AT_LEAST, pairing.config.comparisons)
    for one in tests:
        asked = one.questions
        claim = SAID.get(asked.claim, f"{asked.claim} gathers along its selector's edges")
        reason = f"{asked.part} patched along {asked.edges.mean():.0%} of the edges" if len(asked) else ""
        control = float(np.fmax(one.control_changed, one.control_kept))
        substantial = len(one.changed) >= needed
        parts = one.changed, one.kept
        judged = judged_by_trials(claim, "routes", parts, control, substantial, reason, pairing.config.comparisons)
        if judged.status == HOLDS and asked.claim != UNREAD and not substantial:
            # What has no effect there holds of many models.
            why = f"{len(one.changed)} questions that change an answer could be asked, where {needed} are needed"
            judged = untestable(claim, "routes", why)
        yield judged
        if judged.status != UNTESTABLE and substantial:
            gathered.add(asked.claim)
    if not why_none:
        others = (one for one in found.attended if gathered.isdisjoint(one.gathers))
        yield from (_attended(one, rng, pairing.config.comparisons) for one in others)


def _attended(one: Attended, rng: np.random.Generator, comparisons: int) -> Claim:
    """Attention to other positions may be without effect: it leaves a claim open, and refutes none."""
    heads = "+".join(f"L{layer}H{head}" for layer, head in one.heads)
    claim = f"{heads} attends like the compiled head of {one.variable}"
    reason = "what it gathers there is the same everywhere, or only counted"
    trials = one_of_each(one.alike, one.rows, rng)
    found = judged_by_trials(claim, "routes", [trials], one.uniform, False, reason, comparisons)
    return replace(found, status=OPEN) if found.status == FAILS else found
