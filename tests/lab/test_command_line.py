"""The page of the command line has every command with its options, as they are now."""

import re
from pathlib import Path

from typer.testing import CliRunner

from lab.command_line import options
from rasplens.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def test_the_page_is_up_to_date():
    """`python -m lab.command_line --write docs/reference/command-line.md` draws it."""
    assert options() in PAGE.read_text()


def test_every_command_is_named_and_every_option_is_taken():
    page, runner = PAGE.read_text(), CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert f"`rasplens {name}" in page or f"`{name}`" in page
    for section in options().split("### ")[1:]:
        name = re.match(r"`rasplens (\w+)`", section)[1]
        text = runner.invoke(app, [name, "--help"]).output
        for option in re.findall(r"^\| `(--[\w-]+)", section, re.MULTILINE):
            assert option in text
