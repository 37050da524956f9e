"""The model of a command: the user's own file or folder, or the shipped one."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rasplens import terminal
from rasplens.compile.rasp import Value
from rasplens.errors import RaspLensError
from rasplens.learned import LearnedModel, import_checkpoint, load_compressed, load_pretrained, pretrained_names
from rasplens.learned.compressor.compressed_model import is_compressed
from rasplens.learned.importers.huggingface import check_device, load_huggingface
from rasplens.learned.importers.readings import NOTHING_DECLARED, Declared
from rasplens.sources.files import file_source
from rasplens.sources.tasks import check_task
from rasplens.tasks import TASKS, Task, get_task
from rasplens.tasks.compiling import program_of
from rasplens.tasks.completion import generated_accuracy, is_generated

TOKEN_MAP = "tokens.json"
"""Beside a language model: its id of each of the task's tokens, as a JSON object."""


@dataclass(frozen=True, eq=False)
class Studied:
    """A model under study: what commands take with --learned.

    Attributes:
        model: What `compare` takes.
        origin: Where it comes from, in a phrase.
        size: Its size in a few figures.
        tokens: Its ids of the task's tokens, if it is a language model; None if its ids are the task's.
    """

    model: Any
    origin: str
    size: dict[str, int]
    tokens: dict[Value, int] | None = None

    def vocabulary(self, task: Task) -> Any:
        """Its vocabulary for a task, as `compare` takes it."""
        from rasplens.compare import token_vocabulary

        return None if self.tokens is None else token_vocabulary(task, self.tokens)

    def accuracy(self, task: Task, most: int = 500) -> float:
        """The share of a task's held-out answers that it gives right, on at most so many inputs."""
        from rasplens.compare import as_studied_model

        ids = task.held_out[:most]
        return float(as_studied_model(self.model, task, ids, self.vocabulary(task)).right().mean())

    def generated(self, task: Task, most: int = 500) -> float | None:
        """Return the accuracy where the model reads its own answers; None where answers are no next tokens."""
        from rasplens.compare import as_studied_model

        if not is_generated(task):
            return None
        studied = as_studied_model(self.model, task, task.held_out[:most], self.vocabulary(task))
        return generated_accuracy(task, studied.given, studied.ids).token


def check_names(task: str, programs: Sequence[str], models: Sequence[Path]) -> None:
    """Checks that tasks, programs and files exist, before any slow import.

    Raises:
        RaspLensError: If there is no such task, program or file.
    """
    check_task(task)
    for program in programs:
        if file_source(program) is None and task in TASKS:
            program_of(get_task(task), program)
    for path in models:
        if not path.exists():
            raise RaspLensError(f"There is no file {path}.")
    if not models and task in TASKS and task not in pretrained_names():
        load_pretrained(task)  # raises with the names that exist


def learned_model(
    task: Task, path: Path | None, declared: Declared = NOTHING_DECLARED, device: str = "cpu"
) -> Studied:
    """The user's checkpoint, compressed program or language model, or the shipped model of the task.

    Only language models go to a device: what is smaller is as fast without.

    Raises:
        RaspLensError: If it cannot be read or does not fit, or no model is shipped.
    """
    if path is not None and path.is_dir():
        return _language_model(task, path, device)
    if path is None:
        model: Any = load_pretrained(task.name)
    else:
        model = load_compressed(path) if is_compressed(path) else _imported(task, path, declared)
    config = model.transformer.config
    return Studied(model, model.origin, _size(config, model.transformer.n_params))


def _imported(task: Task, path: Path, declared: Declared) -> LearnedModel:
    has_map = (path.parent / TOKEN_MAP).is_file()
    return import_checkpoint(
        path, task, **asdict(declared), tokens=_told_tokens(task, path.parent) if has_map else None
    )


def _language_model(task: Task, folder: Path, device: str) -> Studied:
    bridge = load_huggingface(folder, _usable(device))
    n_parameters = sum(parameter.numel() for parameter in bridge.parameters())
    tokens = _token_map(task, folder, bridge)
    return Studied(bridge, f"the language model of {folder.name}", _size(bridge.cfg, n_parameters), tokens)


def _usable(device: str) -> str:
    """The device, or the processor where there is no such device; a line says so."""
    try:
        check_device(device)
    except RaspLensError as error:
        terminal.err.print(f"{error} The CPU is used.", soft_wrap=not terminal.err.is_terminal)
        return "cpu"
    return device


def _token_map(task: Task, folder: Path, bridge: Any) -> dict[Value, int]:
    """The ids of a task's tokens and answers: from the map beside the model, or its tokenizer, or one by one.

    Raises:
        RaspLensError: If the map is none, or a token has no id of its own.
    """
    wanted = [value for value in dict.fromkeys((*task.vocab, *task.outputs)) if value is not None]
    path = folder / TOKEN_MAP
    if path.is_file():
        return _told_tokens(task, folder)
    if bridge.cfg.d_vocab == len(task.vocab):
        return {value: i for i, value in enumerate(task.vocab)}
    words = {value: bridge.tokenizer.encode(str(value), add_special_tokens=False) for value in wanted}
    found: dict[int, Value] = {}
    for value, ids in words.items():
        if len(ids) != 1 or ids[0] in found:
            same = f", only that of {found[ids[0]]!r}" if len(ids) == 1 else ""
            raise RaspLensError(
                f"The tokenizer of {folder} has no single id of its own for {value!r}{same}. Give the ids in "
                f"{path}, a JSON object from tokens to ids."
            )
        found[ids[0]] = value
    return {value: id_ for id_, value in found.items()}


def _told_tokens(task: Task, folder: Path) -> dict[Value, int]:
    """The ids that the map beside a model gives for a task's tokens and answers.

    Raises:
        RaspLensError: If it is no map from tokens to ids.
    """
    path = folder / TOKEN_MAP
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # also where numbers are too long, or it is too deep
        raise RaspLensError(f"{path} is not valid JSON; it must be an object from tokens to ids.") from None
    if not isinstance(known, dict) or not all(type(i) is int and i >= 0 for i in known.values()):
        raise RaspLensError(f"{path} must be an object from tokens to ids, whole numbers from 0.")
    wanted = dict.fromkeys((*task.vocab, *task.outputs))
    return {value: known[str(value)] for value in wanted if str(value) in known}


def _size(config: Any, n_parameters: int) -> dict[str, int]:
    return {
        "layers": config.n_layers,
        "heads": config.n_heads,
        "d_model": config.d_model,
        "d_mlp": config.d_mlp or 0,
        "parameters": n_parameters,
    }
