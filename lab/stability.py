"""How far verdicts depend on the basis of the weights and on the seed, and how often intervals cover.

python -m lab.stability --write docs/calibration-tables.md
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from lab.labelled.circuits import CIRCUITS, HARD
from lab.page import show, table
from rasplens.compare.claims.attention import AttendsLike
from rasplens.compare.claims.claim import Claim, Subject
from rasplens.compare.claims.edges.agreement import route_tests
from rasplens.compare.claims.trials.independent import Trials
from rasplens.compare.claims.trials.judging import FAILS, HOLDS, OPEN, UNTESTABLE, Share, judged, share
from rasplens.compare.claims.trials.stopping import looks, until_decided
from rasplens.compare.config import get_config
from rasplens.compare.pairing.answered import AnsweredInputs
from rasplens.compare.study import study_of
from rasplens.compare.subject.vocabulary import Vocabulary, vocabulary_of
from rasplens.compare.verdict.verdict import UNKNOWN, Verdict, judge
from rasplens.compile import CompiledModel, compile_program
from rasplens.model import HasTransformer, disguise
from rasplens.tasks import Task

NAMES = (
    "copy", "shift", "histogram", "share", "ends", "product", "more", "any", "sum_of_three", "latest_a", "lower",
    "behind",
)  # fmt: skip
"""Circuits of most families."""

BASES = (("orthogonal", 1.0), ("oblique", 3.0), ("oblique", 10.0), ("oblique", 30.0))

SEEDS = range(10)

COVERED = (("ends", "program"), ("repeated", "alternative"))
"""Circuits in which a model of one program does part of what the other says: its claims hold on some questions."""

DRAWS = 200

TRUE_SHARES = (0.3, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
"""Of simulated trials."""

RUNS = 1_000


@dataclass(frozen=True, eq=False)
class Case:
    """A program and a model to be compared with it."""

    name: str
    compiled: CompiledModel
    model: HasTransformer
    task: Task
    vocabulary: Vocabulary

    def verdict(self, config: str, seed: int = 0) -> Verdict:
        """The verdict, by the tests of the claims alone."""
        study = study_of(self.compiled, self.model, self.task, get_config(config), seed, self.vocabulary)
        return judge(study, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="quick", help="of the comparisons")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS), help="what to measure")
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    arguments = parser.parse_args()
    for name in arguments.parts:
        text = PARTS[name](arguments.config)
        show(text, arguments.write, name)


def cases(names: tuple[str, ...] = NAMES) -> Iterator[Case]:
    """Each program against the model that it compiles to, and against that of the other program."""
    for name in names:
        circuit = {**CIRCUITS, **HARD}[name]
        task = circuit.task()
        both = [
            compile_program(build(), task.vocab, task.n_ctx, mask=task.visible)
            for build in (circuit.program, circuit.alternative)
        ]
        for own in both:
            for model in both:
                yield Case(f"{own.output} / {model.output}", own, model, task, vocabulary_of(model, task))


def symmetries(config: str) -> str:
    """Every claim on models in other weights, beside the same on the model itself."""
    changed, total, furthest = [], 0, 0.0
    for case in cases():
        plain = _by_subject(case.verdict(config))
        for seed, (basis, condition) in enumerate(BASES):
            weights = case.model.transformer
            twin = disguise(weights, seed, basis=basis, condition=condition, extra_width=2)
            claims = _by_subject(replace(case, model=twin).verdict(config))
            for claim in {**plain, **claims}:
                ours, theirs = plain.get(claim), claims.get(claim)
                total += 1
                if ours is not None and theirs is not None and not np.isnan(ours.score - theirs.score):
                    furthest = max(furthest, abs(ours.score - theirs.score))
                said = [UNTESTABLE if one is None else one.status for one in (ours, theirs)]
                if said[0] != said[1]:
                    kind = basis if basis == "orthogonal" else f"{basis} by {condition:g}"
                    changed.append([case.name, kind, str(claim), *said])
        print(case.name, len(changed), furthest, file=sys.stderr, flush=True)
    rows = [
        ["claims compared", f"{total:,}", ""],
        ["claims of another status", f"{len(changed)}", "0"],
        ["largest change of a score", f"{furthest:.4f}", "≤ 0.001"],
    ]
    listed = table(["program / model", "basis", "claim", "itself", "disguised"], changed) if changed else ""
    return f"### Exact symmetries (`{config}`)\n\n{table(['', 'measured', 'to reach'], rows)}\n\n{listed}".rstrip()


def _by_subject(found: Verdict) -> dict[Subject, Claim]:
    """The claims by what they are about, without the model's heads: a disguise permutes them."""
    return {
        replace(claim.subject, heads=()) if isinstance(claim.subject, AttendsLike) else claim.subject: claim
        for claim in found.all_claims
    }


def seeds(config: str) -> str:
    """The verdict and the status of each variable over seeds of everything random in a comparison."""
    same = total = 0
    rows = []
    for case in cases():
        said: dict[str, list[str]] = {}
        for seed in SEEDS:
            found = case.verdict(config, seed)
            said.setdefault("verdict", []).append(found.answer)
            for name, status in found.variables.items():
                said.setdefault(f"variable {name}", []).append(status)
        for what, answers in said.items():
            counts = Counter(answers)
            (_, most), *_ = counts.most_common(1)
            same += most
            total += len(answers)
            if len(counts) > 1:
                answers_of = ", ".join(f"{answer} {n}" for answer, n in counts.most_common())
                rows.append([case.name, what, answers_of])
        print(case.name, same / total, file=sys.stderr, flush=True)
    contradicting = [row for row in rows if UNKNOWN not in row[2] and "not testable" not in row[2]]
    summary = [
        ["the same as most often", f"{100 * same / total:.1f} % of {total:,}", "≥ 95 %"],
        ["neither the same nor open on some seed", f"{len(contradicting)}", "0"],
    ]
    listed = table(["program / model", "what", "over 10 seeds"], rows) if rows else ""
    title = f"### Seeds (`{config}`, {len(SEEDS)} of each)"
    return f"{title}\n\n{table(['', 'measured', 'to reach'], summary)}\n\n{listed}".rstrip()


def coverage(config: str) -> str:
    """How often the stated interval of a share holds the share over all draws together.

    On routes: there, nothing is searched for, and all that differs from draw to draw are inputs and questions.
    """
    rows = []
    for name, side in COVERED:
        circuit = {**CIRCUITS, **HARD}[name]
        reference, other = (circuit.program, circuit.alternative)[:: 1 if side == "program" else -1]
        task = circuit.task()
        own, model = (
            compile_program(build(), task.vocab, task.n_ctx, mask=task.visible) for build in (reference, other)
        )
        found: dict[str, list[Trials]] = {}
        for draw in range(DRAWS):
            rows_drawn = np.random.default_rng([7, draw]).integers(len(task.held_out), size=400)
            drawn = replace(task, held_out=task.held_out[rows_drawn])
            tests, _ = route_tests(study_of(own, model, drawn, get_config(config), draw).scored, draw)
            for one in tests:
                for part in ("changed", "kept"):
                    if len(trials := getattr(one, part)):
                        found.setdefault(f"{one.questions.subject}, {part}", []).append(trials)
        for claim, draws in found.items():
            everywhere = float(np.concatenate([one.right for one in draws]).mean())
            if not 0.02 < everywhere < 0.98:  # nothing is left to chance
                continue
            intervals = [share(trials) for trials in draws]
            covered = np.mean([one.low <= everywhere <= one.high for one in intervals])
            rows.append([own.output, model.output, claim, f"{everywhere:.3f}", f"{len(draws)}", f"{covered:.1%}"])
        print(name, rows[-1:], file=sys.stderr, flush=True)
    frame = pd.DataFrame(rows)
    n = frame[4].astype(int)
    mean = float((frame[5].str.rstrip("%").astype(float) * n).sum() / n.sum())
    headings = ["program", "model", "share of", "over all draws", "draws", "intervals that cover it"]
    title = f"### Coverage of the 95 % intervals (`{config}`, {DRAWS} fresh draws)"
    return f"{title}\n\n{mean:.1f} % of all intervals cover (to reach: 93 to 97 %).\n\n{table(headings, rows)}"


def stopping(config: str) -> str:
    """How often intervals cover the true share when asking stops by what came out; and what that saves."""
    n, statuses = get_config(config).questions, (HOLDS, FAILS, OPEN)
    nothing = np.zeros((1, 1), dtype=int)
    inputs = AnsweredInputs(next(cases()).task, nothing, nothing, 1)
    rows = []
    for true in TRUE_SHARES:
        found = [_stopped(true, n, run, inputs) for run in range(RUNS)]
        covered = np.mean([one.low <= true <= one.high for one in found])
        asked = np.mean([one.n for one in found])
        said = [judged([one]) for one in found]
        shares = [f"{said.count(status) / RUNS:.1%}" for status in statuses]
        rows.append([f"{true}", f"{covered:.1%}", f"{asked:.0f}", *shares])
    simulated = table(["true share", "covered", "mean trials", *statuses], rows)
    asked_of, by_default = Counter[str](), Counter[str]()
    for case in cases():
        kind = "same" if case.compiled is case.model else "another"
        study = study_of(case.compiled, case.model, case.task, get_config(config), 0, case.vocabulary)
        for one in route_tests(study.scored, 0)[0]:
            for part in (one.changed, one.kept):
                if part.stopped:
                    asked_of[kind] += len(part)
                    by_default[kind] += n
        print(case.name, asked_of, by_default, file=sys.stderr, flush=True)
    fewer = [
        [f"{by_default[kind] / asked:.2f}", kind, f"{asked:,}", f"{by_default[kind]:,}"]
        for kind, asked in asked_of.items()
    ]
    real = table(["fewer", "program", "trials", f"{n} each"], fewer)
    title = f"### Asking until a claim is decided (`{config}`, {RUNS:,} simulated runs of each)"
    return f"{title}\n\n{simulated}\n\nTrials of claims on routes:\n\n{real}"


def _stopped(true: float, n: int, run: int, inputs: AnsweredInputs) -> Share:
    rng = np.random.default_rng([7, run])

    def ask(more: int) -> list[Trials]:
        nothing = np.zeros(more, dtype=int)
        return [Trials(inputs, rng.random(more) < true, nothing, nothing)]

    return share(until_decided(ask, looks(n), 1)[0])


PARTS: Mapping[str, Callable[[str], str]] = {
    "symmetries": symmetries, "seeds": seeds, "coverage": coverage, "stopping": stopping,
}  # fmt: skip
"""The measurements, by the names of the page's markers."""

if __name__ == "__main__":
    main()
