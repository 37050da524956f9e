from model_sizes import size
from rasp_examples import HIST

from rasplens.compile import compile_program
from rasplens.compile.rasp import Map, tokens

DOUBLE = Map(lambda t: t * 2, Map(lambda t: t.upper(), tokens).named("upper"))


def test_what_fusion_leaves_unread_is_not_computed():
    assert size(DOUBLE, ["map-fusion"]).d_model == 6
    assert size(DOUBLE, ["map-fusion", "dead-code"]).d_model == 4


def test_views_that_have_a_name_are_kept():
    program = Map(lambda n: n > 1, HIST).named("more")
    compiled = compile_program(program, "ab", 3)
    assert {"tokens", "hist", "more"} <= set(compiled.variables)
    assert compiled.variables["more"].is_view or compiled.variables["hist"].is_view
