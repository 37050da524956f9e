"""The program of a command, compiled: a task's, one of the library, or one from a file."""

from rasplens.compile import CompiledModel, compile_program
from rasplens.compile.rasp import SOp
from rasplens.compile.rasp.programs.catalogue import CATALOGUE, Entry
from rasplens.errors import RaspLensError, meant
from rasplens.sources.files import file_source, found_in, program_in
from rasplens.sources.vocabularies import GIVEN, Sizes, parse_vocab
from rasplens.tasks import TASKS, Task, compile_for, get_task
from rasplens.tasks.compiling import program_of


def compile_source(source: str, program: str | None, sizes: Sizes, optimize: bool = True) -> CompiledModel:
    """The compiled model of a task's program, of one of the library, of `FILE.py:NAME`, or of `FILE.rasp`.

    Raises:
        RaspLensError: If there is no such task, program or file, or what it needs is not given.
        CompileError: If it cannot be compiled.
    """
    if source in TASKS:
        if sizes.are_given:
            raise RaspLensError(f"Task {source!r} brings its own {GIVEN}; omit them.")
        return reference(get_task(source), program, optimize)
    file = file_source(source)
    if file is None and source not in CATALOGUE:
        raise RaspLensError(
            f"There is no program {source!r}.{meant(source, (*TASKS, *CATALOGUE))} It is neither a task "
            f"({', '.join(TASKS)}), nor of the library ({', '.join(CATALOGUE)}), nor FILE.py:NAME or FILE.rasp."
        )
    if file is None:
        _no_choice(source, program)
        return _from_catalogue(CATALOGUE[source], sizes, optimize)
    found = found_in(file, sizes.output)
    if isinstance(found, Task):
        return reference(found, program, optimize)
    _no_choice(source, program)
    vocab, max_len = sizes.tokens(source, file.is_rasp), sizes.length(source)
    return compile_program(found, vocab, max_len, causal=sizes.causal, partial=sizes.partial, optimize=optimize)


def reference(task: Task, program: str | None, optimize: bool = True) -> CompiledModel:
    """A program, compiled for a task: one of the task's by name, the first by default, or one from a file.

    Raises:
        RaspLensError: If there is no such program.
        CompileError: If it cannot be compiled.
    """
    return compile_for(task, program_source(task, program), optimize=optimize)


def program_source(task: Task, program: str | None) -> SOp:
    """One of a task's programs by name, the first by default; or the one of `FILE.py:NAME` or `FILE.rasp`.

    Raises:
        RaspLensError: If there is no such program.
    """
    file = None if program is None else file_source(program)
    return program_of(task, program) if file is None else program_in(file)


def _no_choice(source: str, program: str | None) -> None:
    if program is not None:
        raise RaspLensError(f"--program chooses among a task's programs; {source} already names its own.")


def _from_catalogue(entry: Entry, sizes: Sizes, optimize: bool) -> CompiledModel:
    """A program of the library, on its own small inputs unless others are given."""
    sizes.take_no_output()
    vocab = entry.vocab if sizes.vocab is None else parse_vocab(sizes.vocab)
    options = dict(entry.options)
    if sizes.causal:
        options["causal"] = True
    if sizes.partial != "forbid":
        options["partial"] = sizes.partial
    return compile_program(entry.build(), vocab, sizes.max_len or entry.max_len, **options, optimize=optimize)
