"""What there is, a line each."""

import json

import pytest

from rasplens.compile.rasp.programs.catalogue import CATALOGUE
from rasplens.learned import pretrained_names
from rasplens.tasks import TASKS


@pytest.mark.parametrize(
    ("command", "names"), [("tasks", TASKS), ("programs", CATALOGUE), ("models", pretrained_names())]
)
def test_everything_is_listed_with_a_line(cli, command, names):
    code, text, _ = cli(command)
    assert code == 0
    assert all(name in text for name in names)
    code, text, _ = cli(command, "--json")
    found = json.loads(text)
    assert len(found) == len(names)
    assert all(all(str(cell).strip() for cell in line.values()) for line in found)
