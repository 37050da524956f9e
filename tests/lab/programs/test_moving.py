"""What stands elsewhere, in one step or two, is the same whichever way it is read."""

import pytest

from lab.programs.moving import fetched, moved, pointed, relayed
from lab.programs.selectors import always, backwards, before
from rasplens.compile.rasp import indices, tokens


@pytest.mark.parametrize("step", [moved, fetched])
@pytest.mark.parametrize(
    ("place", "expected"),
    [(always(1), "bbbb"), (before(1, 4), "dabc"), (backwards(4), "dcba"), (backwards(4, 1), "adcb")],
)
def test_a_place_is_read(step, place, expected):
    program = step(tokens, place, "read")
    assert (program.name, program("abcd")) == ("read", list(expected))


@pytest.mark.parametrize("step", [moved, fetched])
def test_a_relay_is_two_steps(step):
    program = relayed(before(1, 4), backwards(4), "between", "there", step)
    assert program("abcd") == moved(tokens, lambda i: (2 - i) % 4, "at_once")("abcd") == list("cbad")


def test_another_program_may_say_the_place():
    assert pointed(tokens, indices * 0 + 2, "third")("abc") == list("ccc")
