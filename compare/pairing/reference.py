"""The compiled side of a comparison."""

from rasplens.compile import CompiledModel
from rasplens.compile.rasp import SOp
from rasplens.errors import RaspLensError
from rasplens.model import transformer_of
from rasplens.tasks import Task, compile_for
from rasplens.tasks.compiling import AnyProgram


def reference_of(program: AnyProgram, task: Task) -> CompiledModel:
    """The compiled program of a comparison.

    Args:
        program: It, or an s-op, or the name of one of the task's programs, which is compiled.
        task: What it is asked.

    Raises:
        RaspLensError: If it is no program, or does not fit the task.
    """
    if isinstance(program, CompiledModel | SOp | str):
        return compile_for(task, program)
    is_model = transformer_of(program) is not None or hasattr(program, "run_with_hooks")
    turned = " The program comes first, then the model: swap the two arguments." if is_model else ""
    raise RaspLensError(
        "The reference must be a CompiledModel, as compile_program returns it, an s-op, or the name of one of the "
        f"programs of {task.name!r} ({', '.join(task.programs) or 'none'}); got {program!r}.{turned}"
    )
