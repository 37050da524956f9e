"""How often a reader who follows one object call by call has to come back to a module that was left.

    python tests/tools/journey.py [--verbose]

Once the source is read: see `static_journey`. Once it is run: a compiled model is followed through `compare`, a
program through `compile_program`. Counted is every function that it is handed to, itself or inside what carries
it (a study, a pairing, a studied model), in the order of the first calls. A stay is a run of such calls in one
module; a return is a stay in a module that had been left before. What an object is asked itself, by its own
methods, is no journey, and neither is a constructor that keeps it.
"""

import argparse
import inspect
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

from static_journey import Stay, Territory, static_stays

ROOT = Path(__file__).parents[2]

CARRIERS = {"CompiledModel", "Pairing", "Study", "StudiedModel"}
"""Classes whose instances are followed beside the compiled model: they carry it."""

OTHER_SIDE = {"reference": ("learned", "untrained"), "learned": ("compiled", "reference", "untrained")}
"""By side of a comparison, the fields of carriers that hold another one."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", action="store_true", help="print what is entered in each stay that is read")
    is_verbose = parser.parse_args().verbose
    warnings.simplefilter("ignore")
    for name, stays in as_read().items():
        rooms, n_returns = {stay.module for stay in stays}, sum(stay.is_return for stay in stays)
        print(f"{name}, read: {len(rooms)} rooms, {len(stays)} stays, {n_returns} returns")
        for stay in stays if is_verbose else ():
            mark = "return" if stay.is_return else ""
            print(f"  {mark:6} {stay.module.removeprefix('rasplens.')}: {', '.join(stay.entered) or '(caller)'}")
    for name, stays in (("compare", through_compare()), ("compile_program", through_compile())):
        print(f"{name}, run: {len(stays)} stays in {len(set(stays))} modules, {returns(stays)} returns")
        print("  " + " > ".join(stay.removeprefix("rasplens.") for stay in stays))


def returns(stays: list[str]) -> int:
    """How many stays are in a module that had been left before."""
    return len(stays) - len(set(stays))


def as_read() -> dict[str, list[Stay]]:
    """By what is followed, the stays as the source is read."""
    compiling = Territory(ROOT, "rasplens.compile", CARRIERS)
    program = static_stays(compiling, "rasplens.compile.compiler", "compile_program", "program")
    sides = {}
    for side, others in OTHER_SIDE.items():
        comparing = Territory(ROOT, "rasplens.compare", CARRIERS, others)
        sides[f"compare's {side}"] = static_stays(comparing, "rasplens.compare.pipeline", "compare", side)
    return {**sides, "compile_program's program": program}


def through_compare() -> list[str]:
    """The stays of a compiled model that is compared with itself."""
    import rasplens.compare
    from rasplens.compile import compile_program
    from rasplens.tasks import get_task

    task = get_task("copy", n_letters=6, block=3, length=7)
    compiled = compile_program(task.programs["induction"], task.vocab, task.n_ctx, mask=task.visible)
    options = {"task": task, **_few_inputs(rasplens.compare)}
    rasplens.compare.compare(compiled, compiled, **options)  # what is imported or compiled once is out of the way
    return follow(
        lambda: rasplens.compare.compare(compiled, compiled, **options),
        "rasplens.compare",
        lambda value: type(value).__name__ in CARRIERS,
    )


def _few_inputs(module: object) -> dict[str, object]:
    config = getattr(module, "CompareConfig", None)
    return {"n_inputs": 60} if config is None else {"config": config(n_inputs=60, n_fitting=200)}


def through_compile() -> list[str]:
    """The stays of a program that is compiled."""
    from rasplens.compile import compile_program, programs

    program = programs.sort_unique()
    return follow(
        lambda: compile_program(program, [1, 2, 3], 3, partial="allow"),
        "rasplens.compile",
        lambda value: value is program,
    )


def follow(work: Callable[[], object], package: str, is_followed: Callable[[object], bool]) -> list[str]:
    """The modules of the functions that are handed what is followed, in the order of their first calls."""
    seen: set[CodeType] = set()
    stays: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if (
            event != "call"
            or code in seen
            or not module.startswith(package)
            or code.co_name.startswith(("<", "__"))
        ):
            return
        names = [name for name in inspect.getargs(code).args if name not in ("self", "cls")]
        names += code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        if not any(is_followed(frame.f_locals.get(name)) for name in names):
            return
        seen.add(code)
        if not stays or stays[-1] != module:
            stays.append(module)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return stays


if __name__ == "__main__":
    main()
