"""`rasplens tasks`, `programs` and `models`: what there is, a line each."""

import inspect

from rasplens import terminal
from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.tasks import TASKS, get_task


def list_tasks(json: bool) -> None:
    """Prints the tasks: what each asks, its layout, and its programs."""
    rows = []
    for name, build in TASKS.items():
        task = get_task(name)
        rows.append([name, _summary(build), task.n_ctx, len(task.vocab), ", ".join(task.programs)])
    _show("Tasks", ["task", "what it asks", "positions", "tokens", "programs"], rows, json)


def list_programs(json: bool) -> None:
    """Prints the programs of the library, each with the small inputs that it is tried on."""
    rows = []
    for name, entry in CATALOGUE.items():
        about = entry.build().annotations.get("about", "")
        rows.append([name, about.replace("`", ""), " ".join(map(str, entry.vocab)), entry.max_len])
    _show("Programs of the library", ["program", "what it does", "tokens", "longest"], rows, json)


def list_models(json: bool) -> None:
    """Prints the shipped models."""
    from rasplens.learned import load_pretrained, pretrained_names

    rows = []
    for name in pretrained_names():
        model = load_pretrained(name)
        right = model.provenance["accuracy"]
        size = terminal.shape(model.transformer)
        rows.append([name, model.origin, size["layers"], size["heads"], size["d_model"], right["token"]])
    _show("Shipped models", ["task", "how", "layers", "heads", "d_model", "answers right"], rows, json)


def _show(title: str, headings: list[str], rows: list[list[object]], json: bool) -> None:
    if json:
        terminal.as_json([dict(zip(headings, row, strict=True)) for row in rows])
        return
    terminal.table(title, headings, rows)


def _summary(build: object) -> str:
    """Return what a task asks, by the first line of its builder's module."""
    module = inspect.getmodule(build)
    text = inspect.getdoc(module) if module is not None else None
    return (text or "").split("\n")[0].partition(" (")[0].rstrip(".:")
