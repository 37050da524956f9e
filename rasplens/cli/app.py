"""The application, and what all of its commands have in common."""

from functools import partial
from typing import Annotated, Any

import typer
import typer.core

from rasplens import RaspLensError, __version__
from rasplens.cli.options import FLAG

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Compile RASP programs to transformers with known circuits, and compare learned models with them.",
    epilog="Exit codes: 0 done, whatever the verdict; 1 a bug in RASPLens; 2 an error that you can fix; 130 "
    "Ctrl-C.",
)


class SaidOnce(typer.core.TyperCommand):
    """A command that refuses repeated options, except those that take several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments that are left, as typer has them.

        Raises:
            RaspLensError: If an option of one value is given more than once.
        """
        parsed: Any = self.make_parser(ctx).parse_args(list(args))
        said: list[Any] = parsed[2]
        for option in said:
            is_single = option.param_type_name == "option" and not (option.multiple or option.is_flag)
            if is_single and said.count(option) > 1 and not ctx.resilient_parsing:
                several = " `rasplens compare` takes several models." if option.name == "learned" else ""
                raise RaspLensError(f"{ctx.command_path} takes one {option.opts[0]}; got several.{several}")
        return super().parse_args(ctx, args)


command = partial(app.command, cls=SaidOnce)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[
        bool, typer.Option("--version", metavar=FLAG, help="Print the version.", is_eager=True)
    ] = False,
) -> None:
    if version:
        typer.echo(f"rasplens {__version__}")
        raise typer.Exit()
