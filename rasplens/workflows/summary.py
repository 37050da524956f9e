"""A comparison on the terminal: the models, the verdict, and in full its evidence; also of one made before."""

import re
from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path

import numpy as np
import pandas as pd

from rasplens import terminal
from rasplens.compare import Comparison
from rasplens.compare.claims.claim import Claim
from rasplens.compare.claims.trials.judging import AT_LEAST, OPEN
from rasplens.compare.evidence.subspaces.decodability import best_points
from rasplens.compare.report.attention_view import WITHOUT_BOS, attention_on, head_name
from rasplens.compare.verdict.headline import headline
from rasplens.compare.verdict.verdict import NOT, UNKNOWN
from rasplens.compile import CompiledModel, Verification
from rasplens.errors import RaspLensError
from rasplens.sources import Studied
from rasplens.tasks import Task
from rasplens.tasks.answers import compiled_codes
from rasplens.tasks.task import NO_ANSWER, NOT_ASKED

DOUBTFUL = 0.9
"""Below this share of right answers it is said that an import may be at fault."""


AGREED_INPUTS = 300
"""Inputs on which a program's answers are held against the task's."""

NO_ROWS = pd.DataFrame()

EXPLAIN = "Which program does it implement? `rasplens explain` searches one."
"""Said after a verdict that leads nowhere."""

ASK_MORE = "More questions may tell: --config thorough asks most."
"""Said where trials leave the verdict open."""


MOST_KEYS, LEAST_SHARE = 3, 0.05
"""Of what a query attends to, so many keys are named, with at least this share."""


DATA, REPORT = "comparison", "report"
"""The names of the two files of a comparison begin so; what follows is the same."""

HEADINGS = ["run", "task", "program", "verdict", "same\nanswers", "same\nvariables", "same\nroutes"]


def show_accuracy(name: str, studied: Studied, task: Task, expected: float | None, is_shown: bool = True) -> None:
    """Says how often a model of the user's is right, before anything else is asked of it.

    Raises:
        RaspLensError: If it is right less often than expected.
    """
    right = studied.accuracy(task)
    if expected is not None and right < expected:
        raise RaspLensError(
            f"{name} gets {right:.3f} of the answers of {task.name!r} right; --expect asks for {expected:g}. Its "
            "tokens, layout or architecture may have been read wrongly."
        )
    is_doubtful = right < DOUBTFUL and expected is None and studied.tokens is not None  # others are warned of
    if is_shown and not terminal.err.quiet:
        doubt = (
            " If it did learn the task, its tokens, layout or architecture were read wrongly."
            if is_doubtful
            else ""
        )
        generated = studied.generated(task)
        own = "" if generated is None else f", {generated:.3f} when it reads its own answers"
        line = f"{name}: {right:.3f} of the answers of {task.name!r} right{own}.{doubt}"
        terminal.err.print(line, soft_wrap=not terminal.err.is_terminal)


def show_agreement(compiled: CompiledModel, task: Task, as_part: bool, is_shown: bool = True) -> None:
    """Says how often a program gives a task's answers, if it does not always, before a model is held against it.

    Args:
        compiled: The program.
        task: The task.
        as_part: Whether only answers that the program has are asked for.
        is_shown: Whether to say so.

    Raises:
        RaspLensError: If none of the program's values is an answer of the task: it can never be right.
    """
    ids = task.held_out[:AGREED_INPUTS]
    values = (*compiled.variables[compiled.output].values, None)
    codes = compiled_codes(compiled, task.sequences(ids), task.loss_positions)
    answers, targets = task.codes_of(compiled)[codes], task.target(ids)
    wrong = (targets != NOT_ASKED) & (answers != targets)
    asked = targets != NOT_ASKED
    if as_part:
        asked, wrong = asked & (answers != NO_ANSWER), wrong & (answers != NO_ANSWER)
    if not wrong.any():
        return
    row, place = np.argwhere(wrong)[0]
    tokens, position = task.sequences(ids[row : row + 1])[0], task.positions[task.loss_positions[place]]
    example = (
        f"on {','.join(map(str, tokens))} at position {position} it says {values[codes[row, place]]!r}, "
        f"the task says {task.answer_name(int(targets[row, place]))}"
    )
    if (task.codes_of(compiled)[:-1] == NO_ANSWER).all():
        raise RaspLensError(
            f"{compiled.output!r} has no value that is an answer of {task.name!r}, so no model of that task can "
            f"do what the program does: {example}. Give another --program, or the task that it belongs to."
        )
    if is_shown and not terminal.err.quiet:
        share = 1 - wrong.sum() / asked.sum()
        line = f"{compiled.output!r} gives {share:.3f} of the answers of {task.name!r}: {example}."
        terminal.err.print(line, soft_wrap=not terminal.err.is_terminal)


def show_models(
    compiled: CompiledModel,
    learned: Studied,
    comparison: Comparison,
    checks: dict[str, Verification],
) -> None:
    """Prints the size and the accuracy of both models, and how the compiled one was checked."""
    rows = []
    for side, size in (("compiled", terminal.shape(compiled.transformer)), ("learned", learned.size)):
        accuracy = comparison.accuracies[side]
        rows.append([side, *size.values(), accuracy.token, accuracy.sequence])
    own = comparison.accuracies.get("generated")
    generated = [] if own is None else [f"Reading its own answers, the learned model gets {own.token:.3f} right."]
    headings = ["", *terminal.shape(compiled.transformer), "answers\nright", "inputs\nright"]
    terminal.table(
        f"{comparison.task}: the learned model ({learned.origin}) and the program {compiled.output!r}",
        headings,
        rows,
        [*generated, *(f"The compiled program on {name}: {check}." for name, check in checks.items())],
    )


def show_verdict(comparison: Comparison) -> None:
    """Prints the verdict, its three levels, and in a few sentences why."""
    found = headline(comparison.program, comparison.verdict)
    terminal.say(found.sentence, style="bold")
    for line in found.levels:
        terminal.say(f"  {line.level:10} {line.answer:13} {line.counts}")
    terminal.say()
    for reason in found.reasons:
        terminal.say(reason)
    if comparison.verdict.answer == NOT and not comparison.verdict.is_of_part:
        terminal.say(EXPLAIN)
    if comparison.verdict.answer == UNKNOWN and any(one.is_measured for one in comparison.verdict.of_status(OPEN)):
        terminal.say(ASK_MORE)
    terminal.say()


def _needed(claims: Sequence[Claim]) -> str:
    """What scores claims need, in words: the most common one, and those that need another."""
    others: dict[float, list[str]] = {}
    for claim in claims:
        if claim.subject.at_least != AT_LEAST and not isnan(claim.subject.at_least):
            others.setdefault(claim.subject.at_least, []).append(claim.words)
    said = [f"{at_least:.0%} for {', '.join(words)}" for at_least, words in others.items()]
    return "; ".join([f"{AT_LEAST:.0%} is needed", *said]) + "."


def show_evidence(comparison: Comparison) -> None:
    """Prints the claims, the axes of evidence, the best row of each table, and the findings in words."""
    claims = comparison.verdict.claims
    columns = ["kind", "claim", "status", "score", "low", "high", "control"]
    cells = claims[columns].astype(object).where(claims[columns].notna(), terminal.NOTHING)
    cells["status"] = [claim.status_words for claim in comparison.verdict.all_claims]
    title = "Claims of the program, with 95 % intervals"
    terminal.table(title, columns, cells.to_numpy().tolist(), [_needed(comparison.verdict.all_claims)])
    rows: list[list[object]] = [
        [axis.name, *((axis.score, axis.low, axis.high) if axis.has_score else [terminal.NOTHING] * 3)]
        for axis in comparison.axes
    ]
    if rows:
        terminal.table(
            "Evidence: 0 is what controls reach, 1 the compiled model",
            ["axis", "score", "low", "high"],
            rows,
            [f"{axis.name}: {axis.note}." for axis in comparison.axes],
        )
    decoded = comparison.tables.get("decodability", NO_ROWS)
    if len(decoded):
        best = best_points(decoded)
        best["point"] = best["point"].map(_short)
        columns = ["variable", "point", "measure", "score", "chance", "shuffled", "untrained"]
        terminal.table(
            "Residual subspaces: best hook point per variable", columns, best[columns].to_numpy().tolist()
        )
    interchanged = comparison.tables.get("interchange", NO_ROWS)
    if len(interchanged):
        columns = ["variable", "point", "pairs", "iia", "specificity", "random", "untrained"]
        interchanged = interchanged.assign(point=interchanged["point"].map(_short))
        title = "Interchange: a variable of another input put into the learned model"
        terminal.table(title, columns, interchanged[columns].to_numpy(dtype=object).tolist())
    attention = comparison.tables.get("attention", NO_ROWS)
    if len(attention):
        columns = ["similarity", "shuffled", "input_dependence", "concordance", "p", "untrained"]
        cells = [
            [row["variable"], f"L{row['layer']}H{row['head']}", *row[columns]]
            for _, row in attention[attention["matched"]].iterrows()
        ]
        terminal.table("Attention: matched heads", ["compiled head for", "learned head", *columns], cells)
    heads = comparison.tables.get("part_heads", NO_ROWS)
    if len(heads):
        terminal.table("Heads of the part, by effect", list(heads), heads.to_numpy(dtype=object).tolist())
    correlated: list[list[object]] = [
        [method, c.rho, c.within_rows, f"{c.p:.3f}", c.n]
        for method, c in comparison.correlations.items()
        if c is not None
    ]
    if correlated:
        headings = ["ablation", "rank correlation", "keys permuted", "p", "edges"]
        terminal.table("Ablation: the effects of attention edges in both models", headings, correlated)
    for sentence in comparison.findings[1:]:  # the first one is the verdict
        terminal.say(sentence + "\n")


def _short(point: str) -> str:
    """A hook point of the residual stream in few letters: "L0 resid_post"."""
    return re.sub(r"blocks\.(\d+)\.hook_", r"L\1 ", point)


def show_runs(paths: Sequence[Path], *, verbose: bool, json: bool) -> None:
    """Prints the verdict of a run, or a table of several.

    Args:
        paths: Files of comparisons, folders of runs, or folders of these.
        verbose: Whether to print all evidence, as `rasplens run --verbose` does.
        json: Whether to print JSON.

    Raises:
        RaspLensError: If there is no comparison, or one cannot be read.
    """
    files = _named_files(paths)
    found = list(_loaded(files, paths))
    if json:
        terminal.as_json([{"file": str(file), **one.to_dict()} for file, one in found])
        return
    if len(found) > 1 and not verbose:
        rows: list[list[object]] = [
            [_run(file), one.task, one.program, one.verdict.answer, *one.verdict.levels.values()]
            for file, one in found
        ]
        terminal.table(f"{len(found)} comparisons", HEADINGS, rows)
        return
    for file, one in found:
        _show(file, one, verbose)


def show_attention(paths: Sequence[Path], tokens: str, *, json: bool) -> None:
    """Prints what the heads of a run attend to on one input: each compiled head beside the learned one.

    Args:
        paths: As for `show_runs`; only one comparison may be there.
        tokens: The input, with spaces or commas between tokens.
        json: Whether to print JSON.

    Raises:
        RaspLensError: If there is no comparison or several, one without models, or no such input.
    """
    files = _named_files(paths)
    if len(files) > 1:
        raise RaspLensError(
            f"--input is for one run; there are {len(files)}: {', '.join(map(_run, files))}. Name one."
        )
    view = attention_on(Comparison.load(files[0]), tokens)
    labels = view.labels(0)
    if json:
        terminal.as_json(
            [
                {"heads": pair.heads, "variable": pair.variable, "positions": labels}
                | {side: one[0].tolist() for side, one in pair.patterns.items()}
                for pair in view.pairs
            ]
        )
        return
    for pair in view.pairs:
        rows: list[list[object]] = [
            [label, *(_attended(pair.patterns[side][0][query], labels) for side in pair.heads)]
            for query, label in enumerate(labels)
        ]
        names = {side: f"{side}\n{head_name(head)}" for side, head in pair.heads.items()}
        terminal.table(f"Attention for {pair.variable}", ["from", *names.values()], rows)
    terminal.say(WITHOUT_BOS)


def _attended(shares: np.ndarray, labels: Sequence[str]) -> str:
    """What a query attends to most, with shares."""
    most = [key for key in np.argsort(-shares, kind="stable")[:MOST_KEYS] if shares[key] >= LEAST_SHARE]
    return ", ".join(f"{labels[key]} {shares[key]:.2f}" for key in most) or terminal.NOTHING


def _loaded(files: Sequence[Path], named: Sequence[Path]) -> Iterator[tuple[Path, Comparison]]:
    """The comparisons of files; of several that nobody named, those that can be read.

    Raises:
        RaspLensError: If one that was named, or the only one, cannot be read.
    """
    for file in files:
        try:
            yield file, Comparison.load(file)
        except RaspLensError as error:
            if file in named or len(files) == 1:
                raise
            terminal.err.print(f"Left out: {error}", soft_wrap=True)


def _show(file: Path, comparison: Comparison, verbose: bool) -> None:
    right = ", ".join(f"{side} {accuracy.token:.3f}" for side, accuracy in comparison.accuracies.items())
    terminal.say(f"{comparison.task}: the learned model ({comparison.learned_origin}) and {comparison.program!r}")
    terminal.say(f"Answers right on {comparison.n_inputs:,} held-out inputs: {right}.")
    terminal.say()
    if verbose:
        show_evidence(comparison)
    show_verdict(comparison)
    report = file.with_name(file.name.replace(DATA, REPORT, 1)).with_suffix(".html")
    terminal.say(f"Report: {report}." if report.exists() else f"There is no report {report}.")


def _run(file: Path) -> str:
    """A comparison's folder, if it is the first one there."""
    return str(file.parent if file.stem == DATA else file)


def _named_files(paths: Sequence[Path]) -> list[Path]:
    """The comparisons of several paths, each once."""
    return list(dict.fromkeys(file for path in paths for file in _files(path)))


def _files(path: Path) -> Iterator[Path]:
    """The comparisons of a path: itself, those of a run, or those of all runs in a folder.

    Raises:
        RaspLensError: If there are none.
    """
    if path.is_file():
        yield path
        return
    if not path.exists():
        raise RaspLensError(f"There is no file or folder {path}. `rasplens run` writes to runs/TASK.")
    found = list(path.glob(f"{DATA}*.json")) or list(path.glob(f"*/{DATA}*.json"))
    if not found:
        raise RaspLensError(f"{path} holds no {DATA}.json of `rasplens run`, nor does a folder in it.")
    yield from sorted(found, key=lambda file: (file.parent, file.stem != DATA, file.name))
