"""What the commands do, step by step."""

import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rasplens import terminal as show
from rasplens.compare import CompareConfig, Comparison, compare, rank, write_report
from rasplens.compare.evidence.subspaces.decodability import best_points
from rasplens.compare.pipeline import STAGES
from rasplens.compile import CompiledModel, CompileError, Verification, verify
from rasplens.sources import Sizes, Studied, compile_source, learned_model, parse_vocab, reference
from rasplens.tasks import Task, get_task

VERIFIED_INPUTS = 300
"""Inputs of a task, and random ones, on which a compiled program is checked before it is compared with."""


@dataclass(frozen=True)
class Sample:
    """How many held-out inputs models are compared on, and the seed that chooses them."""

    n_inputs: int
    seed: int

    @property
    def config(self) -> CompareConfig:
        """The standard config with this number of inputs."""
        return CompareConfig(n_inputs=self.n_inputs)


def run_task(
    task_name: str, path: Path | None, program: str | None, out: Path, sample: Sample, json: bool
) -> None:
    """Compiles, verifies, compares and writes the report."""
    started = time.perf_counter()
    task = get_task(task_name)
    learned = learned_model(task, path)
    out.mkdir(parents=True, exist_ok=True)
    with show.progress("compiling") as advance:
        compiled = reference(task, program)
        checks = verify_for_task(compiled, task)
        comparison = _compare(compiled, learned, task, sample, advance)
        advance("report", len(STAGES), len(STAGES))
        comparison.save(out / "comparison.json")
        write_report(comparison, out / "report.html")
    seconds = time.perf_counter() - started
    if json:
        values = comparison.to_dict()
        del values["tables"]
        values["verification"] = {name: _verification(check) for name, check in checks.items()}
        show.as_json({**values, "report": str(out / "report.html"), "seconds": round(seconds, 1)})
        return
    _show_models(compiled, learned, comparison, checks)
    _show_comparison(comparison)
    show.out.print(f"Report: {out / 'report.html'}   Figures: {out / 'comparison.json'}   ({seconds:.0f} s)")


def compile_and_show(
    source: str, program: str | None, sizes: Sizes, out: Path | None, run_on: str | None, json: bool
) -> None:
    """Compiles a program, shows what came of it, and runs it."""
    started = time.perf_counter()
    compiled = compile_source(source, program, sizes)
    seconds = time.perf_counter() - started
    answer = None if run_on is None else compiled(parse_vocab(run_on))
    if out is not None:
        compiled.save(out)
    anatomy, shape = show.anatomy(compiled), show.shape(compiled.transformer)
    if json:
        bos = {"bos": compiled.has_bos, "max_len": compiled.inputs.max_len}
        show.as_json({"program": compiled.output, **shape, **bos, "variables": anatomy, "answer": answer})
        return
    show.table(f"{compiled.output}, compiled in {seconds:.2f} s", list(shape), [list(shape.values())])
    show.table("Residual stream", list(anatomy[0]), [list(row.values()) for row in anatomy])
    if run_on is not None:
        show.out.print(f"{run_on} -> {','.join(map(str, answer or []))}")
    if out is not None:
        show.out.print(f"Weights and anatomy: {out}")


def verify_and_show(source: str, program: str | None, sizes: Sizes, samples: int, seed: int, json: bool) -> None:
    """Verifies a compiled program.

    Raises:
        CompileError: If it is wrong, with the counterexample.
    """
    compiled = compile_source(source, program, sizes)
    with show.progress("verifying") as advance:
        found = verify(
            compiled,
            samples=samples,
            seed=seed,
            progress=lambda done, total: advance("verifying", done, total),
        )
    if json:
        show.as_json({"program": compiled.output, **_verification(found)})
    if not found.ok:
        raise CompileError(f"{compiled.output!r} is {found}")
    if not json:
        show.out.print(f"{compiled.output}: {found}")


def reproduce_and_show(name: str, out: Path, json: bool) -> None:
    """Trains a published model anew, and shows its figures beside the published ones.

    Raises:
        ValueError: If there is no such model.
    """
    from rasplens.learned import get_recipe, use_all_cores
    from rasplens.reproductions import REPRODUCTIONS

    use_all_cores()
    if name == "grid":
        _grid_and_show(out, json)
        return
    if name not in REPRODUCTIONS:
        raise ValueError(f"There is no reproduction {name!r}. There are {', '.join(REPRODUCTIONS)} and grid.")
    entry = REPRODUCTIONS[name]
    out.mkdir(parents=True, exist_ok=True)
    path, state = out / f"{name}.safetensors", out / f"{name}.training.safetensors"
    with show.progress(f"training {name}") as advance:
        report = _training_report(get_recipe(entry.task, entry.recipe).steps, 1, advance)
        learned = entry.train(progress=report, state_path=state)
    learned.save(path)
    state.unlink()
    findings = entry.check(learned)
    figures = entry.write_figures(learned, out)
    if json:
        values = [asdict(finding) for finding in findings]
        show.as_json({"name": name, "model": str(path), "figures": [str(f) for f in figures], "findings": values})
        return
    rows: list[list[object]] = [[f.measure, f.theirs, f.ours, _mark(f.holds)] for f in findings]
    show.table(f"{entry.model}: {entry.source}", ["", "theirs", "ours", "holds"], rows)
    show.out.print(f"Model: {path}   Figures: {', '.join(str(figure) for figure in figures)}")


def _grid_and_show(out: Path, json: bool) -> None:
    from rasplens.learned import published_grid as grid

    out.mkdir(parents=True, exist_ok=True)
    with show.progress("training the grid") as advance:
        table = grid.train_grid(get_task("compression_notebook"), grid.GRID, grid.STEPS, progress=advance)
    table.to_csv(out / "grid.csv", index=False)
    if json:
        show.as_json(table.to_dict("records"))
        return
    show.table("The notebook's grid, on held-out pairs", list(table), table.to_numpy().tolist())
    show.out.print(f"Table: {out / 'grid.csv'}")


def _mark(holds: bool | None) -> str:
    return {True: "yes", False: "NO", None: ""}[holds]


def _training_report(steps: int, n_models: int, advance: show.Advance) -> Callable[[Any], None]:
    """What shows how a training stands."""

    def report(now: Any) -> None:
        seed = "" if n_models == 1 else f"seed {now.seed}  "
        rate = f"{now.step / now.seconds:.0f} steps/s  {now.seconds / now.step * (steps - now.step):.0f} s left"
        advance(f"{seed}loss {now.loss:.4f}  accuracy {now.token:.4f}  {rate}", now.step, steps)

    return report


def train_and_show(task_name: str, recipe: str, seeds: list[int], out: Path, json: bool) -> None:
    """Trains a model for each seed and stores it; a training that was interrupted goes on where it was.

    Raises:
        ValueError: If there is no place to write to (before training, not after).
    """
    from rasplens.learned import get_recipe, train_many, use_all_cores

    task = get_task(task_name)
    steps = get_recipe(task.name, recipe).steps
    if out.is_dir():
        raise ValueError(f"{out} is a folder. Name a file in it, such as {out / f'{task.name}.safetensors'}.")
    if not out.resolve().parent.is_dir():
        raise ValueError(f"Cannot write {out}: the folder {out.parent} does not exist. Create it first.")
    paths = [out] if len(seeds) == 1 else [out.with_stem(f"{out.stem}-{seed}") for seed in seeds]
    state = out.with_suffix(".training.safetensors")
    use_all_cores()
    with show.progress(f"training {task.name}") as advance:
        report = _training_report(steps, len(seeds), advance)
        models = train_many(task, recipe, seeds, progress=report, state_path=state)
    for model, path in zip(models, paths, strict=True):
        model.save(path)
    state.unlink()
    if json:
        values = [
            {"task": task.name, "path": str(path), **model.provenance}
            for model, path in zip(models, paths, strict=True)
        ]
        show.as_json(values[0] if len(seeds) == 1 else values)
        return
    for model, path in zip(models, paths, strict=True):
        accuracy = model.provenance["accuracy"]
        show.out.print(
            f"{task.name}: {accuracy['token']:.4f} of the answers and {accuracy['sequence']:.4f} of the inputs "
            f"right on held-out inputs after {model.provenance['steps']:,} steps. Model: {path}"
        )


def compare_and_show(
    task_name: str, paths: list[Path], programs: list[str] | None, sample: Sample, out: Path | None, json: bool
) -> None:
    """Compares every model (the shipped one, if none is given) with every program, and ranks the programs."""
    task = get_task(task_name)
    models = [(str(path), learned_model(task, path)) for path in paths] or [("shipped", learned_model(task, None))]
    references = [reference(task, program) for program in programs or task.programs]
    for compiled in references:
        verify_for_task(compiled, task)
    rankings = {}
    with show.progress("comparing") as advance:
        for name, learned in models:

            def begin(stage: str, name: str = name) -> None:
                advance(f"{name}: {stage}", STAGES.index(stage), len(STAGES))

            rankings[name] = rank(
                references, learned, task=task, config=sample.config, seed=sample.seed, progress=begin
            )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, ranking in rankings.items():
            for comparison in ranking.comparisons:
                write_report(comparison, out / f"{Path(name).stem}_{comparison.program}.html")
    if json:
        values = [
            {"model": name, "verdict": ranking.verdict, **comparison.to_dict()}
            for name, ranking in rankings.items()
            for comparison in ranking.comparisons
        ]
        show.as_json(values)
        return
    rows: list[list[object]] = [
        [
            f"{name}: {one.program}",
            one.verdict.answer,
            *_cells([one.verdict.probability, *(a.score for a in one.axes)]),
        ]
        for name, ranking in rankings.items()
        for one in ranking.comparisons
    ]
    show.table(f"{task.name}: models against programs", list(SUMMARY_HEADINGS), rows)
    for name, ranking in rankings.items():
        show.out.print(f"{name} → {ranking.verdict}")
    show.out.print(SUMMARY_KEY)
    if out is not None:
        show.out.print(f"Reports: {out}")


SUMMARY_HEADINGS = (
    "model: program", "verdict", "p", "behav-\niour", "inter-\nchange", "atten-\ntion", "abla-\ntion",
    "sub-\nspaces",
)  # fmt: skip
SUMMARY_KEY = """\
p               probability that the model implements the program
behaviour …     five axes of evidence: 0 is what the controls reach, 1 the compiled model itself"""


def _cells(values: list[float]) -> list[str]:
    """Scores in two figures, a dash where there is none."""
    return ["-" if value != value else f"{value:.2f}" for value in values]


def verify_for_task(compiled: CompiledModel, task: Task) -> dict[str, Verification]:
    """Checks on random inputs, and on inputs of the task, which random ones seldom are.

    Raises:
        CompileError: If the compiled program is wrong on one: nothing may be compared with it.
    """
    checks = {
        "random inputs": verify(compiled, samples=VERIFIED_INPUTS),
        "task inputs": verify(compiled, inputs=task.sequences(task.held_out[:VERIFIED_INPUTS])),
    }
    for check in checks.values():
        if not check.ok:
            raise CompileError(f"{compiled.output!r} is {check}")
    return checks


def _compare(
    compiled: CompiledModel,
    learned: Studied,
    task: Task,
    sample: Sample,
    advance: show.Advance,
) -> Comparison:
    def begin(stage: str) -> None:
        advance(f"{compiled.output}: {stage}", STAGES.index(stage), len(STAGES))

    return compare(compiled, learned, task=task, config=sample.config, seed=sample.seed, progress=begin)


def _verification(check: Verification) -> dict[str, Any]:
    return {
        "ok": check.ok,
        "checked": check.checked,
        "total": check.total,
        "exhaustive": check.exhaustive,
        "undefined": check.undefined,
        "margin": check.margin,
        "counterexample": None if check.counterexample is None else str(check.counterexample),
    }


def _show_models(
    compiled: CompiledModel,
    learned: Studied,
    comparison: Comparison,
    checks: dict[str, Verification],
) -> None:
    rows = []
    for side, model in (("compiled", compiled.transformer), ("learned", learned.transformer)):
        accuracy = comparison.accuracies[side]
        rows.append([side, *show.shape(model).values(), accuracy.token, accuracy.sequence])
    headings = ["", *show.shape(compiled.transformer), "answers right", "inputs right"]
    show.table(f"{comparison.task}: {learned.origin} against {compiled.output!r}", headings, rows)
    for name, check in checks.items():
        show.out.print(f"Compiled program against interpreter, {name}: {check}")
    show.out.print()


def _show_comparison(comparison: Comparison) -> None:
    rows: list[list[object]] = [
        [axis.name, axis.score, axis.low, axis.high, axis.note]
        if axis.has_score
        else [axis.name, "-", "-", "-", axis.note]
        for axis in comparison.axes
    ]
    show.table(
        "Evidence: 0 is what controls reach, 1 the compiled model", ["axis", "score", "low", "high", ""], rows
    )
    decoded = comparison.tables["decodability"]
    if len(decoded):
        best = best_points(decoded)
        best["point"] = best["point"].map(_short)
        columns = ["variable", "point", "measure", "score", "chance", "shuffled", "untrained"]
        show.table("Residual subspaces: best hook point per variable", columns, best[columns].to_numpy().tolist())
    interchanged = comparison.tables["interchange"]
    if len(interchanged):
        columns = ["variable", "point", "pairs", "iia", "specificity", "random", "untrained"]
        interchanged = interchanged.assign(point=interchanged["point"].map(_short))
        title = "Interchange: a variable of another input put into the learned model"
        show.table(title, columns, interchanged[columns].to_numpy(dtype=object).tolist())
    attention = comparison.tables["attention"]
    matched = attention[attention["matched"]]
    columns = ["similarity", "shuffled", "input_dependence", "concordance", "p", "untrained"]
    cells = [[row["variable"], f"L{row['layer']}H{row['head']}", *row[columns]] for _, row in matched.iterrows()]
    show.table("Attention: matched heads", ["compiled head for", "learned head", *columns], cells)
    correlated = [
        [method, c.rho, c.within_rows, f"{c.p:.3f}", c.n]
        for method, c in comparison.correlations.items()
        if c is not None
    ]
    headings = ["ablation", "rank correlation", "keys permuted", "p", "edges"]
    show.table("Ablation: the worth of attention edges in both models", headings, correlated)
    for sentence in comparison.findings:
        show.out.print(sentence + "\n")


def _short(point: str) -> str:
    """A hook point of the residual stream in few letters: "L0 resid_post"."""
    return re.sub(r"blocks\.(\d+)\.hook_", r"L\1 ", point)
