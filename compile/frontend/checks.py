"""Checks of a program before it is lowered."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from rasplens.compile import rasp
from rasplens.compile.errors import CompileError
from rasplens.compile.rasp.input_space import InputSpace


def check_expressions(of_program: Sequence[rasp.RASPExpr], space: InputSpace) -> None:
    """Raises where a program has a value on no input, or not on inputs of every length.

    Args:
        of_program: All its expressions, itself the last.
        space: The inputs.

    Raises:
        CompileError: If it reads itself, or has a constant of another length than some inputs.
    """
    try:
        TopologicalSorter({id(expr): list(map(id, expr.children)) for expr in of_program}).prepare()
    except CycleError:
        program = of_program[-1]
        raise CompileError(f"{program.name!r} depends on itself, so it has no value.", program) from None
    for expr in of_program:
        if not isinstance(expr, rasp.ConstantSOp | rasp.ConstantSelector) or not expr.check_length:
            continue
        if space.lengths != {len(expr.value)}:
            raise CompileError(
                f"{expr.name!r} is a constant of length {len(expr.value)}, but sequences have lengths from "
                f"1 to {space.max_len}. Set check_length=False to cut it or fill it up with None.",
                expr,
            )
