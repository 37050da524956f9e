from model_sizes import size

from rasplens.compile import CompileLimits, compile_program, rasp
from rasplens.compile.rasp import Map, tokens

PAIR = rasp.SequenceMap(lambda x, y: x + y, tokens, Map(lambda t: t.upper(), tokens))


def test_values_that_no_input_has_are_dropped():
    """Tokens and their capitals have two values each, but they meet in two of the four pairs."""
    assert size(PAIR, []).d_model - size(PAIR, ["value-pruning"]).d_model == 2


def test_input_spaces_beyond_the_limit_are_not_run():
    def width(executed):
        limits = CompileLimits(executed_inputs=executed)
        return compile_program(PAIR, "ab", 2, optimize=["value-pruning"], limits=limits).transformer.config.d_model

    assert width(5) - width(6) == 2  # there are six sequences
