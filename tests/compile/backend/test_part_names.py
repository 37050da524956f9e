from rasp_examples import EQUAL, PREVIOUS

from rasplens.compile import compile_program
from rasplens.compile.rasp import Aggregate, Map, SelectorWidth, indices, tokens

SHIFTED = Aggregate(PREVIOUS, tokens).named("shifted")


def test_the_result_keeps_its_name_also_where_another_expression_computes_it():
    assert compile_program(SHIFTED, "ab", 3).output == "shifted"
    renamed = Map(lambda t: t, SHIFTED).named("renamed")
    assert compile_program(renamed, "ab", 3).output == "renamed"


def test_s_ops_of_the_program_are_told_from_steps_of_the_compiler():
    variables = compile_program(SelectorWidth(EQUAL).named("width"), "ab", 3).variables
    assert not variables["width"].is_auxiliary
    assert variables["width (attention on BOS)"].is_auxiliary


def test_a_variable_is_there_from_the_point_on_at_which_it_is_written():
    doubled = Map(lambda pair: pair * 2, SHIFTED + indices.named("place")).named("doubled")
    compiled = compile_program(doubled, [0, 1], 3, optimize=False)
    points = {name: compiled.variables[name].written_at for name in ("tokens", "shifted", "doubled")}
    assert points == {
        "tokens": "blocks.0.hook_resid_pre",
        "shifted": "blocks.0.hook_resid_mid",
        "doubled": "blocks.1.hook_resid_post",
    }


def test_heads_and_neurons_are_called_by_what_they_compute():
    compiled = compile_program(SHIFTED + 1, [0, 1], 3, optimize=False)
    assert compiled.heads == {(0, 0): "shifted"}
    ((place, name),) = compiled.neurons.items()
    assert (place[0], name) == (0, compiled.output)
