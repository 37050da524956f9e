import pytest
from model_sizes import size

from rasplens.compile import compile_program, programs
from rasplens.compile.rasp import Aggregate, Select, Where, indices, tokens


def test_heads_choose():
    at_first = Aggregate(Select(indices, indices, lambda k, q: k == q + 1), tokens)
    later = Aggregate(Select(indices, indices, lambda k, q: k == q - 1), tokens)
    choice = Where(indices == 0, at_first, later)
    assert size(choice, ["views"]).d_mlp > 0
    converted = size(choice, ["if-conversion", "dead-code", "views"])
    assert (converted.d_mlp, converted.n_heads) == (0, 2)


@pytest.mark.parametrize("build", [programs.slots, lambda: programs.offset(3)], ids=["slots", "offset"])
def test_programs_of_choices_need_no_mlp(build):
    assert compile_program(build(), [0, 1], 5).transformer.config.attn_only
