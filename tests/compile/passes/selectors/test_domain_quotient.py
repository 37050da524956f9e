from model_sizes import size

from rasplens.compile import programs


def test_selectors_read_only_what_tells_keys_apart():
    count = programs.count("a")
    quotient = size(count, ["domain-quotient", "views"], vocab="abcdef")
    assert quotient.d_model < size(count, ["views"], vocab="abcdef").d_model
