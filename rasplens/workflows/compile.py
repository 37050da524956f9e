"""`rasplens compile`: what came of a program, and what it answers."""

import time

from rasplens import terminal
from rasplens.compile import CompiledModel
from rasplens.compile.display.anatomy_table import anatomy_rows
from rasplens.compile.rasp import Value
from rasplens.output_files import Destination
from rasplens.sources import Sizes, compile_source, parse_vocab
from rasplens.sources.vocabularies import shown


def compile_and_show(
    source: str, program: str | None, sizes: Sizes, to: Destination | None, run_on: str | None, json: bool
) -> None:
    """Compiles a program, shows what came of it, and runs it.

    Raises:
        RaspLensError: If there is no such program, or its file cannot be written.
    """
    if to is not None:
        to.check_file("compiled.safetensors")
    started = time.perf_counter()
    compiled = compile_source(source, program, sizes)
    seconds = time.perf_counter() - started
    answer = None if run_on is None else compiled(_input(run_on, compiled))
    if to is not None:
        to.write(to.path, compiled.save)
    anatomy, shape = anatomy_rows(compiled), terminal.shape(compiled.transformer)
    if json:
        bos = {"bos": compiled.has_bos, "max_len": compiled.inputs.max_len}
        terminal.as_json({"program": compiled.output, **shape, **bos, "variables": anatomy, "answer": answer})
        return
    title = f"{compiled.output}, compiled in {seconds:.2f} s for {shown(compiled.inputs.vocab)}"
    terminal.table(title, list(shape), [list(shape.values())])
    terminal.table("Residual stream", list(anatomy[0]), [list(row.values()) for row in anatomy])
    if run_on is not None:
        terminal.out.print(f"{run_on} -> {','.join(map(str, answer or []))}")
    if to is not None:
        terminal.out.print(f"Weights and anatomy: {to.path}")


def _input(text: str, compiled: CompiledModel) -> list[Value]:
    """An input as it is written; numbers are words where the model's tokens are."""
    are_words = all(isinstance(token, str) for token in compiled.inputs.vocab)
    return [str(token) if are_words else token for token in parse_vocab(text)]
