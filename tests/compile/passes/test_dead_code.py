from model_sizes import size

from rasplens.compile import compile_program
from rasplens.compile.rasp import Aggregate, Map, Select, Where, indices, tokens


def test_what_other_passes_leave_unread_is_not_computed():
    """Two heads write the choice; the two aggregates that it was between are no longer read."""
    following = Aggregate(Select(indices, indices, lambda k, q: k == q + 1), tokens)
    previous = Aggregate(Select(indices, indices, lambda k, q: k == q - 1), tokens)
    choice = Where(indices == 0, following, previous)
    assert size(choice, ["if-conversion", "views"]).n_heads == 4
    assert size(choice, ["if-conversion", "dead-code", "views"]).n_heads == 2


def test_views_that_have_a_name_are_kept():
    double = Map(lambda t: t * 2, Map(lambda t: t.upper(), tokens).named("upper")).named("double")
    compiled = compile_program(double, "ab", 3)
    assert list(compiled.variables) == ["tokens", "upper", "double"]
    assert compiled.variables["upper"].is_view
