"""`rasplens compile`, `rasplens verify`, and the check that stands before every comparison."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rasplens import terminal
from rasplens.compile import CompiledModel, CompileError, Verification, verify
from rasplens.compile.display.anatomy_table import anatomy_rows
from rasplens.compile.rasp import Value
from rasplens.output_files import Destination
from rasplens.progress import progress_bar
from rasplens.sources import Sizes, compile_source, parse_vocab
from rasplens.sources.vocabularies import shown
from rasplens.tasks import Task

VERIFIED_INPUTS = 300
"""Inputs of a task, and random ones, on which a compiled program is checked before it is compared with."""


@dataclass(frozen=True)
class Outputs:
    """Where a compiled program is written to.

    Attributes:
        file: Its weights and anatomy; None for nowhere.
        checkpoint: The folder of a stock GPT-2; None for none.
    """

    file: Destination | None
    checkpoint: Path | None


def compile_and_show(
    source: str, program: str | None, sizes: Sizes, to: Outputs, run_on: str | None, json: bool
) -> None:
    """Compiles a program, shows what came of it, and runs it.

    Raises:
        RaspLensError: If there is no such program, or its files cannot be written.
    """
    if to.file is not None:
        to.file.check_file("compiled.safetensors")
    started = time.perf_counter()
    compiled = compile_source(source, program, sizes)
    seconds = time.perf_counter() - started
    answer = None if run_on is None else compiled(_input(run_on, compiled))
    if to.file is not None:
        to.file.write(to.file.path, compiled.save)
    checked = None if to.checkpoint is None else compiled.to_huggingface(to.checkpoint)
    anatomy, shape = anatomy_rows(compiled), terminal.shape(compiled.transformer)
    if json:
        written = {} if checked is None else {"checkpoint": {"folder": str(to.checkpoint), **asdict(checked)}}
        bos = {"bos": compiled.has_bos, "max_len": compiled.inputs.max_len}
        terminal.as_json(
            {"program": compiled.output, **shape, **bos, "variables": anatomy, "answer": answer, **written}
        )
        return
    title = f"{compiled.output}, compiled in {seconds:.2f} s for {shown(compiled.inputs.vocab)}"
    terminal.table(title, list(shape), [list(shape.values())])
    terminal.table("Residual stream", list(anatomy[0]), [list(row.values()) for row in anatomy])
    if run_on is not None:
        terminal.out.print(f"{run_on} -> {','.join(map(str, answer or []))}")
    if to.file is not None:
        terminal.out.print(f"Weights and anatomy: {to.file.path}")
    if checked is not None:
        terminal.out.print(f"GPT-2 for transformers, {checked}: {to.checkpoint}")


def _input(text: str, compiled: CompiledModel) -> list[Value]:
    """An input as it is written; numbers are words where the model's tokens are."""
    are_words = all(isinstance(token, str) for token in compiled.inputs.vocab)
    return [str(token) if are_words else token for token in parse_vocab(text)]


def verify_and_show(source: str, program: str | None, sizes: Sizes, samples: int, seed: int, json: bool) -> None:
    """Verifies a compiled program.

    Raises:
        CompileError: If it is wrong, with the counterexample.
    """
    compiled = compile_source(source, program, sizes)
    with progress_bar("verifying") as advance:
        found = verify(
            compiled,
            samples=samples,
            seed=seed,
            progress=lambda done, total: advance("verifying", done, total),
        )
    if json:
        terminal.as_json({"program": compiled.output, **verification_values(found)})
    if not found.ok:
        raise CompileError(f"{compiled.output!r} is {found}")
    if not json:
        tokens, longest = shown(compiled.inputs.vocab), compiled.inputs.max_len
        terminal.out.print(f"{compiled.output}, on {tokens}, at most {longest} of them: {found}")


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


def verification_values(check: Verification) -> dict[str, Any]:
    """A verification as it stands in JSON."""
    return {
        "ok": check.ok,
        "checked": check.checked,
        "total": check.total,
        "exhaustive": check.exhaustive,
        "undefined": check.undefined,
        "answers": check.answers,
        "margin": check.margin,
        "counterexample": None if check.counterexample is None else str(check.counterexample),
    }
