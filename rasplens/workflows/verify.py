"""`rasplens verify`, and the check that stands before every comparison."""

from typing import Any

from rasplens import terminal
from rasplens.compile import CompiledModel, CompileError, Verification, verify
from rasplens.progress import progress_bar
from rasplens.sources import Sizes, compile_source
from rasplens.sources.vocabularies import shown
from rasplens.tasks import Task

VERIFIED_INPUTS = 300
"""Inputs of a task, and random ones, on which a compiled program is checked before it is compared with."""


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
