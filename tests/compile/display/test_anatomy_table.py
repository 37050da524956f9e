from rasp_examples import HIST

from rasplens.compile import compile_program
from rasplens.compile.display.anatomy_table import anatomy_rows


def test_the_anatomy_says_what_computes_each_variable():
    compiled = compile_program(HIST, ["a", "b"], 3)
    rows = {row["variable"]: row for row in anatomy_rows(compiled)}
    assert rows["tokens"]["computed by"] == "embedding"
    assert rows["tokens"]["directions"] == "0-1"
    assert rows["hist (attention on BOS)"]["computed by"] == "L0H0"
    assert rows["hist"]["computed by"].startswith("L0 neurons 0-")
