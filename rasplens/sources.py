"""Where the models of a command come from: a task's programs, a user's Python file, a user's checkpoint."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rasplens.compile import CompiledModel, compile_program, rasp
from rasplens.compile.rasp import SOp, Value
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, Entry
from rasplens.learned import (
    CompressedModel,
    LearnedModel,
    import_checkpoint,
    load_compressed,
    load_pretrained,
    pretrained_names,
)
from rasplens.learned.compressor.compressed_model import is_compressed
from rasplens.tasks import TASKS, Task, get_task

Studied = LearnedModel | CompressedModel
"""A model under study: what commands take with --learned."""


@dataclass(frozen=True)
class Sizes:
    """What a program from a file needs beside itself; a task's programs bring theirs."""

    vocab: str | None
    max_len: int | None
    causal: bool


def compile_source(source: str, program: str | None, sizes: Sizes, optimize: bool = True) -> CompiledModel:
    """The compiled model of a task's program, of one of the library, or of `FILE.py:NAME`.

    Raises:
        ValueError: If there is no such task, program or file, or what it needs is not given.
        CompileError: If it cannot be compiled.
    """
    if source in TASKS:
        if sizes != Sizes(None, None, False):
            raise ValueError(f"Task {source!r} brings its own --vocab, --max-len and --causal; omit them.")
        return reference(get_task(source), program, optimize)
    if ":" not in source and source not in CATALOGUE:
        raise ValueError(
            f"{source!r} is neither a task ({', '.join(TASKS)}), nor a program of the library "
            f"({', '.join(CATALOGUE)}), nor FILE.py:NAME."
        )
    if program is not None:
        raise ValueError(f"--program chooses among a task's programs; {source} already names its own.")
    if source in CATALOGUE:
        return _from_catalogue(CATALOGUE[source], sizes, optimize)
    expression = program_from_file(source)
    if sizes.vocab is None or sizes.max_len is None:
        raise ValueError(f"To compile {source}, say --vocab (such as a,b,c or 0..9) and --max-len.")
    return compile_program(
        expression, parse_vocab(sizes.vocab), sizes.max_len, causal=sizes.causal, optimize=optimize
    )


def _from_catalogue(entry: Entry, sizes: Sizes, optimize: bool) -> CompiledModel:
    """A program of the library, on its own small inputs unless others are given."""
    vocab = entry.vocab if sizes.vocab is None else parse_vocab(sizes.vocab)
    options = dict(entry.options)
    if sizes.causal:
        options["causal"] = True
    return compile_program(entry.build(), vocab, sizes.max_len or entry.max_len, **options, optimize=optimize)


def check_names(task_name: str, programs: Sequence[str], models: Sequence[Path]) -> None:
    """Looks for what is named, before anything is imported that takes long.

    Raises:
        ValueError: If there is no such task, program or file, or no model where none is named.
    """
    task = get_task(task_name)
    for program in programs:
        _check_program(task, program)
    for path in models:
        if not path.exists():
            raise ValueError(f"There is no file {path}.")
    if not models and task.name not in pretrained_names():
        load_pretrained(task.name)  # which says what there is


def _check_program(task: Task, program: str) -> None:
    if program not in task.programs:
        known = ", ".join(task.programs)
        raise ValueError(f"Task {task.name!r} has no program {program!r}. It has {known}.")


def reference(task: Task, program: str | None, optimize: bool = True) -> CompiledModel:
    """A task's program, compiled for the task; the first one unless named.

    Raises:
        ValueError: If the task has no such program.
    """
    name = next(iter(task.programs)) if program is None else program
    _check_program(task, name)
    return compile_program(task.programs[name], task.vocab, task.n_ctx, mask=task.visible, optimize=optimize)


def learned_model(task: Task, path: Path | None) -> Studied:
    """The user's checkpoint or compressed program, or the shipped model of the task.

    Raises:
        ValueError: If the checkpoint cannot be read or does not fit, or no model is shipped.
    """
    if path is None:
        return load_pretrained(task.name)
    return load_compressed(path) if is_compressed(path) else import_checkpoint(path, task)


def program_from_file(source: str) -> SOp:
    """The s-op that a Python file defines under a name, from `FILE.py:NAME`.

    Raises:
        ValueError: If there is no such file or name, the file fails, or it is no s-op.
    """
    file, _, name = source.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"There is no file {file}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{file} failed with {type(error).__name__}: {error}.") from error
    found: Any = getattr(module, name, None)
    if not isinstance(found, SOp):
        primitives = rasp.TokensType | rasp.IndicesType | rasp.LengthType
        values = vars(module).items()
        known = [key for key, value in values if isinstance(value, SOp) and not isinstance(value, primitives)]
        raise ValueError(f"{file} defines no s-op {name!r}. It defines {', '.join(known) or 'none'}.")
    return found


def parse_vocab(text: str) -> list[Value]:
    """Tokens from `a,b,c` or `0..9`; what looks like an integer is one.

    Raises:
        ValueError: If a range is empty.
    """
    tokens: list[Value] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        if dots and _is_integer(first) and _is_integer(last):
            if int(first) > int(last):
                raise ValueError(f"The range {part} of --vocab is empty; write {last}..{first}.")
            tokens += range(int(first), int(last) + 1)
        else:
            tokens.append(int(part) if _is_integer(part) else part)
    return tokens


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
