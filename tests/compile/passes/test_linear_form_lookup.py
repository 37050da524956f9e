from model_sizes import size

from rasplens.compile import programs
from rasplens.compile.rasp import indices


def test_a_difference_is_looked_up_instead_of_every_pair():
    left = programs.length() - indices
    looked_up, in_pairs = (
        size(left, [*chosen, "dead-code", "views"], "ab", 16).d_mlp for chosen in (["linear-form-lookup"], [])
    )
    assert looked_up < in_pairs / 2
