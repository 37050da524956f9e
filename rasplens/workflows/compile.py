"""`rasplens compile`: what came of a program, and what it answers."""

import time
from pathlib import Path

from rasplens import terminal
from rasplens.compile.display.anatomy_table import anatomy_rows
from rasplens.sources import Sizes, compile_source, parse_vocab


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
    anatomy, shape = anatomy_rows(compiled), terminal.shape(compiled.transformer)
    if json:
        bos = {"bos": compiled.has_bos, "max_len": compiled.inputs.max_len}
        terminal.as_json({"program": compiled.output, **shape, **bos, "variables": anatomy, "answer": answer})
        return
    terminal.table(f"{compiled.output}, compiled in {seconds:.2f} s", list(shape), [list(shape.values())])
    terminal.table("Residual stream", list(anatomy[0]), [list(row.values()) for row in anatomy])
    if run_on is not None:
        terminal.out.print(f"{run_on} -> {','.join(map(str, answer or []))}")
    if out is not None:
        terminal.out.print(f"Weights and anatomy: {out}")
