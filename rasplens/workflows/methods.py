"""`rasplens methods`: methods that look for circuits or variables, on a model in which they are known."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rasplens import terminal
from rasplens.compare.discovery.cases import KINDS, Case, siit_case
from rasplens.compare.discovery.edge_graph import edge_graph
from rasplens.compare.discovery.importances import read_importances, write_importances
from rasplens.compare.discovery.methods.catalogue import METHODS, Method, methods_under, scores_of
from rasplens.compare.discovery.problem import Problem, Scores
from rasplens.compare.discovery.protocol import Setting
from rasplens.compare.discovery.scoreboard import board
from rasplens.compare.discovery.variables.finders import FINDERS
from rasplens.compare.discovery.variables.scoring import variable_board
from rasplens.errors import RaspLensError, meant
from rasplens.model import save
from rasplens.model.storage import fingerprint
from rasplens.output_files import Destination
from rasplens.progress import progress_bar
from rasplens.sources import Sizes, task_source
from rasplens.sources.programs import program_source
from rasplens.tasks import compile_for

HEADINGS = ("method", "average\nprecision", "AUROC", "CPR", "CMD", "decoys\nbelow", "seconds")
KEY = """\
average precision, AUROC  of edges; a random method gets the share of edges in the circuit, and 0.5
CPR           area under the faithfulness of growing circuits: higher is better
CMD           area under its distance from 1: lower is better
decoys below  share of a decoy's edges that rank below nine tenths of the circuit's"""

LEAST_SCORED = 0.5
"""The share of a model's edges that a file of scores has to have: fewer are no ranking of its edges."""

VARIABLE_HEADINGS = ("variable", "method", "interchanged", "where used", "sites", "rank", "seconds")
VARIABLE_KEY = """\
interchanged  agreement with the program when the variable, as found, is interchanged at the method's surest site
where used    the same, at the sites where something still reads the variable
sites         how often a method is surer of such a site than of one where nothing reads the variable any longer"""


@dataclass(frozen=True)
class Wanted:
    """Which model is scored on.

    Attributes:
        source: The task, by name or by file.
        program: One of the task's; its first by default.
        sizes: Of a task that is made from a program.
        kind: How the model is made.
        seed: Of its making.
        stored: A model that was trained to implement the program, in place of one that is made.
    """

    source: str
    program: str | None
    sizes: Sizes
    kind: str
    seed: int
    stored: Path | None = None

    def case(self) -> Case:
        """The model.

        Raises:
            RaspLensError: If there is no such program or kind, or the stored model is of another program.
        """
        _check([self.kind], KINDS, "kind of model")
        task = task_source(self.source, self.sizes)
        compiled = compile_for(task, program_source(task, self.program))
        if self.stored is not None:
            return siit_case(compiled, task, path=self.stored)
        return KINDS[self.kind](compiled, task, self.seed)


def score_and_show(
    wanted: Wanted,
    names: Collection[str],
    setting: Setting,
    scores: Sequence[Path],
    export: Destination | None,
    json: bool,
) -> None:
    """Makes a model whose circuit is known, and prints how methods do on it.

    Raises:
        RaspLensError: If there is no such program, kind or method, or a file cannot be read or written.
    """
    _check(names, METHODS, "method")
    if missing := [path for path in scores if not path.is_file()]:
        raise RaspLensError(f"There is no file {missing[0]}. It would hold your scores, by edge, in MIB's format.")
    if scores and setting.scoring.embeddings == "apart":  # in such files they are one
        setting = replace(setting, scoring=replace(setting.scoring, embeddings="one"))
    if export is not None:
        _check_export(export)
    with progress_bar("making the model") as advance:
        case = wanted.case()
        if not case.truth(setting) - case.unknown(setting):
            raise RaspLensError(
                f"{case.program!r} has no circuit on these inputs: nothing that differs between them reaches an "
                "answer. Try another program, or longer inputs."
            )
        methods: dict[str, Method] = {name: METHODS[name] for name in names or methods_under(setting.protocol)}
        methods = {str(path): _stored(path) for path in scores} | methods
        found = board([case], methods, {"": setting}, progress=advance)
    if export is not None:
        model = case.transformer
        known: dict[str, Any] = {
            "config": model.config,
            "truth": case.truth(setting),
            "model": fingerprint(model),
            "problem": case.problem(setting.protocol),
        }
        circuit = partial(write_importances, **known)
        export.write(export.path, circuit)
        export.write(_beside(export), lambda path: save(model, path, _how_to_run(case)))
    rows = found.drop(columns=["setting"]).to_dict("records")
    if json:
        plain = [{name: None if value != value else value for name, value in row.items()} for row in rows]
        unknown = sorted(case.unknown(setting))
        truth = sorted(case.truth(setting))
        terminal.as_json({"truth": truth, "unknown": unknown, "decoys": case.decoys, "methods": plain})
        return
    _show(case, setting, rows)
    if export is not None:
        terminal.out.print(f"Model and circuit: {_beside(export)}, {export.path}")


def find_variables_and_show(wanted: Wanted, names: Collection[str], json: bool) -> None:
    """Makes a model whose variables are known, and prints how methods that look for them do.

    Raises:
        RaspLensError: If there is no such program, kind or method, or no variable that could be looked for.
    """
    _check(names, FINDERS, "method that looks for variables")
    with progress_bar("making the model") as advance:
        case = wanted.case()
        finders = {name: FINDERS[name] for name in names or FINDERS}
        found = variable_board([case], finders, seed=wanted.seed, progress=advance)
    if found.empty:
        raise RaspLensError(
            f"{case.program!r} has no variable between its input and its output that can be interchanged in this "
            "model. Try another program, or another --kind."
        )
    rows = found.to_dict("records")
    if json:
        plain = [{name: None if value != value else value for name, value in row.items()} for row in rows]
        terminal.as_json({"variables": plain})
        return
    columns = ("variable", "method", "interchange", "used", "sites", "rank", "method_seconds")
    title = f"{case.program}, {case.kind}: methods that look for variables"
    terminal.table(title, list(VARIABLE_HEADINGS), [[row[name] for name in columns] for row in rows])
    terminal.out.print(VARIABLE_KEY)


def _stored(path: Path) -> Method:
    """The scores of a file, as a method."""

    def scores(problem: Problem) -> Scores:
        model, n_edges = problem.transformer, len(problem.graph.edges)
        found = read_importances(path, model.config, fingerprint(model))
        if len(found) < LEAST_SCORED * n_edges:
            raise RaspLensError(
                f"{path} scores {len(found)} of the model's {n_edges} edges. Give each edge a score, 0 to those "
                "that do not matter."
            )
        return scores_of(problem, found)

    return scores


def _beside(export: Destination) -> Path:
    """Where the model of an exported circuit goes."""
    return export.path.with_suffix(".safetensors")


def _check_export(export: Destination) -> None:
    """Raises where a circuit and its model cannot be written."""
    export.check_file("circuit.json")
    if export.path.suffix != ".json":
        raise RaspLensError(f"{export.path} must end in .json; the model is written beside it as .safetensors.")
    export.check(_beside(export))


def _how_to_run(case: Case) -> dict[str, Any]:
    """Return what someone needs to know who has the model's file alone, in JSON values."""
    ids, columns = case.task.held_out[:1], case.vocabulary.columns
    return {
        "program": case.program,
        "kind": case.kind,
        "answers": list(case.task.outputs),
        "logit_of_each_answer": None if columns is None else columns.tolist(),
        "answered_at": [case.vocabulary.positions[position] for position in case.task.loss_positions],
        "example": {"input": case.task.sequences(ids)[0], "ids": case.vocabulary.tokens(ids)[0].tolist()},
        "ids_of_tokens": [
            [token, int(case.vocabulary.tokens(ids * 0 + i)[0, case.vocabulary.positions[0]])]
            for i, token in enumerate(case.task.vocab)
        ],
    }


def _check(names: Collection[str], known: Collection[str], what: str) -> None:
    if unknown := [name for name in names if name not in known]:
        raise RaspLensError(
            f"There is no {what} {unknown[0]!r}.{meant(unknown[0], known)} There are {', '.join(known)}."
        )


def _show(case: Case, setting: Setting, rows: list[dict[str, object]]) -> None:
    columns = ("method", "average_precision", "auroc", "cpr", "cmd", "decoys", "method_seconds")
    ablation, metric, truth = setting.protocol.ablation, rows[0]["metric"], case.truth(setting)
    n_edges = len(edge_graph(case.transformer.config).edges)
    title = f"{case.program}, {case.kind}: {len(truth)} of {n_edges} edges; {ablation} ablation, {metric}"
    terminal.table(title, list(HEADINGS), [[row[name] for name in columns] for row in rows])
    terminal.out.print(KEY)
    for row in rows:
        if row["n_unscored"]:
            terminal.out.print(f"{row['method']} gives {row['n_unscored']} of {row['n_edges']} edges no score.")
    if n_unknown := len(case.unknown(setting)):
        nodes = ", ".join(case.untested)
        terminal.out.print(f"{n_unknown} edges are not scored: their nodes could not be tested ({nodes}).")
    if setting.scoring.embeddings == "one":
        terminal.out.print("Embeddings are one node, as in the file; its edges into the logits do not count.")
