"""Brackets of several kinds, closed by writing: against a stack."""

import itertools

import pytest

from rasplens.compile import compile_program, programs, verify

PAIRS = {"(": ")", "[": "]"}


def closing_by_stack(text):
    """What closes a text, innermost first; None if it closes a bracket that is not the innermost open one."""
    stack = []
    for token in text:
        if token in PAIRS:
            stack.append(PAIRS[token])
        elif not stack or stack.pop() != token:
            return None
    return stack[::-1]


@pytest.fixture(scope="module")
def machine():
    return compile_program(programs.brackets.closing(["()", "[]"]), list("()[]."), 8, causal=True)


def test_every_text_that_can_be_closed_is_closed(machine):
    texts = [text for n in range(1, 5) for text in itertools.product("()[]", repeat=n)]
    asked = [text for text in texts if closing_by_stack(text) is not None]
    assert len(asked) > 50
    for text in asked:
        wanted = closing_by_stack(text)
        assert machine.generate(list(text), 5) == [*wanted, *"." * (5 - len(wanted))]


def test_the_weights_give_the_interpreter_s_answers():
    small = compile_program(programs.brackets.closing(["()", "[]"]), list("()[]."), 4, causal=True)
    assert verify(small).ok


def test_a_text_that_closes_the_wrong_kind_is_judged_by_depth(machine):
    """Kinds are not checked: the innermost is the latest bracket that was opened at the depth of now."""
    assert machine.generate(list("([)"), 1) == [")"]
