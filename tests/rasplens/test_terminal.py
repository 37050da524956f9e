import json

from rasp_examples import HIST

from rasplens import terminal
from rasplens.compile import compile_program


def test_figures_in_tables():
    assert [terminal.figure(value) for value in (0.12345, 12_345, "x", None)] == ["0.123", "12,345", "x", "None"]


def test_json_is_printed_alone(capsys):
    terminal.as_json({"a": [1, None]})
    assert json.loads(capsys.readouterr().out) == {"a": [1, None]}


def test_the_anatomy_says_what_computes_each_variable():
    compiled = compile_program(HIST, ["a", "b"], 3)
    rows = {row["variable"]: row for row in terminal.anatomy(compiled)}
    assert rows["tokens"]["computed by"] == "embedding"
    assert rows["tokens"]["directions"] == "0-1"
    assert rows["hist (attention on BOS)"]["computed by"] == "L0H0"
    assert rows["hist"]["computed by"].startswith("L0 neurons 0-")


def test_progress_goes_to_the_error_stream(capsys):
    with terminal.progress("working") as advance:
        advance("half", 1, 2)
    assert capsys.readouterr().out == ""
