"""`rasplens compare`: which of the programs each model implements."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rasplens import terminal
from rasplens.compare import rank, write_report
from rasplens.compare.ranking import NONE, Ranking
from rasplens.compare.verdict.headline import refutation
from rasplens.output_files import Destination, file_name
from rasplens.progress import comparison_report, progress_bar
from rasplens.sources import learned_model, reference
from rasplens.sources.request import Request
from rasplens.workflows.compile import verify_for_task
from rasplens.workflows.summary import EXPLAIN, show_accuracy, show_agreement

SUMMARY_HEADINGS = (
    "model: program", "verdict", "same\nanswers", "same\nvariables", "same\nroutes",
)  # fmt: skip
SUMMARY_KEY = """\
verdict         a conjunction of the three levels: the same answers, variables (algorithm) and routes (circuit)"""


def compare_and_show(asked: Request, to: Destination | None, json: bool) -> None:
    """Compares every model (the shipped one, if none is given) with every program, and ranks the programs."""
    task = asked.task
    models = [(str(path), learned_model(task, path, asked.declared, asked.device)) for path in asked.models] or [
        ("shipped", learned_model(task, None))
    ]
    for name, model in models if asked.models else ():
        show_accuracy(name, model, task, asked.expected, is_shown=not json)
    references = [reference(task, program) for program in asked.programs or task.programs]
    places: dict[tuple[str, str], Path] = {}
    if to is not None:
        stems = _stems([name for name, _ in models])
        pairs = [(name, compiled.output) for name, _ in models for compiled in references]
        files = [to.path / f"{stems[name]}_{file_name(program)}.html" for name, program in pairs]
        to.check_folder(*files)
        places = dict(zip(pairs, files, strict=True))
    for compiled in references:
        show_agreement(compiled, task, asked.as_part, is_shown=not json)
        verify_for_task(compiled, task)
    rankings = {}
    with progress_bar("comparing") as advance:
        for name, learned in models:
            report = comparison_report(advance, name)
            rankings[name] = rank(
                references,
                learned.model,
                task=task,
                config=asked.config,
                seed=asked.seed,
                vocabulary=learned.vocabulary(task),
                as_part=asked.as_part,
                progress=report,
            )
    if to is not None:
        to.make_folder()
        for name, ranking in rankings.items():
            for comparison in ranking.comparisons:
                place = places[name, comparison.program]
                to.write(place, partial(write_report, comparison), refreshed=True)
    if json:
        values = [
            {"model": name, "verdict": ranking.verdict, **comparison.to_dict()}
            for name, ranking in rankings.items()
            for comparison in ranking.comparisons
        ]
        terminal.as_json(values)
        return
    rows: list[list[object]] = [
        [
            f"{name}: {one.program}",
            one.verdict.answer,
            *one.verdict.levels.values(),
        ]
        for name, ranking in rankings.items()
        for one in ranking.comparisons
    ]
    terminal.table(f"{task.name}: models against programs", list(SUMMARY_HEADINGS), rows)
    for line in (line for name, ranking in rankings.items() for line in _outcome(name, ranking)):
        terminal.out.print(line, soft_wrap=not terminal.out.is_terminal)
    if any(ranking.verdict == NONE for ranking in rankings.values()):
        terminal.out.print(EXPLAIN)
    terminal.out.print(SUMMARY_KEY)
    if to is not None:
        terminal.out.print(f"Reports: {to.path}")


def _outcome(name: str, ranking: Ranking) -> Iterator[str]:
    """Which program a model implements, and of each other one a question that refutes it."""
    yield f"{name} → {ranking.verdict}"
    yield from ranking.not_told_apart
    for one in ranking.comparisons:
        if why := refutation(one.verdict):
            yield f"{name}: {one.program}: {why}"


def _stems(names: list[str]) -> dict[str, str]:
    """A file name for each model: what its path ends in, as far up as tells it from the others."""
    stems = {}
    for name in names:
        parts = _parts(name)
        others = [_parts(other) for other in names if other != name]
        tells = (n for n in range(1, len(parts)) if all(other[-n:] != parts[-n:] for other in others))
        n = next(tells, len(parts))
        stems[name] = "_".join(part for part in parts[-n:] if part not in ("/", "..", "."))
    return stems


def _parts(name: str) -> tuple[str, ...]:
    """Of a path, without the ending; of one that ends in no name, such as `.`, that of where it leads."""
    path = Path(name)
    return (path if path.name.strip(".") else path.resolve()).with_suffix("").parts
