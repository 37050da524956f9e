import re
import warnings

import pytest
from rasp_examples import EVERYTHING, PREVIOUS

from rasplens.compile import CausalWarning
from rasplens.compile.frontend.causality import warn_where_causality_matters
from rasplens.compile.frontend.defined_program import defined_program
from rasplens.compile.frontend.undefined_inputs import DefinedOn
from rasplens.compile.limits import DEFAULT_LIMITS
from rasplens.compile.rasp import Aggregate, Map, SelectorWidth, numerical, tokens
from rasplens.compile.rasp.input_space import input_space


def warned(program, vocab="ab", max_len=3):
    space = input_space(vocab, max_len, causal=True)
    graph = defined_program(program, space, DefinedOn("allow")).whole
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_where_causality_matters(program, graph, space, DEFAULT_LIMITS)
    return [(one.category, str(one.message)) for one in found]


def test_the_smallest_input_on_which_the_future_matters_is_named():
    ((category, message),) = warned(SelectorWidth(EVERYTHING).named("seen"))
    assert category is CausalWarning
    assert re.search(r"'seen'.*\['a', 'a'\].*\[2, 2\].*\[1, 2\]", message)


@pytest.mark.parametrize("program", [tokens, Aggregate(PREVIOUS, tokens)])
def test_a_program_that_looks_back_only_warns_of_nothing(program):
    assert warned(program) == []


def test_a_program_without_another_meaning_warns_of_nothing():
    """Seeing everything, a mean of so many numbers is more than the weights can hold."""
    fine = numerical(Map(lambda t: {"a": 0, "b": 2**18}[t], tokens))
    assert warned(numerical(Aggregate(PREVIOUS, fine))) == []
