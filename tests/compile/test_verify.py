import itertools
import re
from dataclasses import replace

import pytest
from rasp_examples import EVERYTHING, HIST

from rasplens.compile import CompileError, compile_program, rasp, verify
from rasplens.compile.rasp import Aggregate, Map, SequenceMap, indices, numerical, tokens
from rasplens.errors import RaspLensError
from rasplens.model import Transformer


def damaged(compiled, name: str, index: tuple[int, ...], value: float):
    """The model with one weight changed."""
    model = compiled.transformer
    weights = {key: array.copy() for key, array in model.weights.items()}
    weights[name][index] = value
    return replace(compiled, transformer=Transformer(model.config, weights, model.mask))


def test_small_input_spaces_are_checked_in_full():
    found = verify(compile_program(HIST, ["a", "b", "c"], 4))
    assert found.ok
    assert found.exhaustive
    assert found.checked == found.total == 3 + 9 + 27 + 81
    assert found.margin == pytest.approx(0.5, abs=1e-3)
    assert str(found) == "equal on all 120 inputs; smallest margin 0.500"


def test_large_input_spaces_are_sampled():
    found = verify(compile_program(HIST, range(30), 12), samples=50, seed=3)
    assert found.ok
    assert not found.exhaustive
    assert found.checked == 50
    assert found.total == sum(30**n for n in range(1, 13))
    assert re.search(r"^equal.* 50 of 5\.4e17", str(found))


def test_given_inputs_are_what_is_checked():
    found = verify(compile_program(HIST, ["a", "b"], 3), inputs=["ab", "a", "bbb"])
    assert (found.checked, found.exhaustive, found.ok) == (3, False, True)
    with pytest.raises(ValueError, match=r"'x' at position 0.*vocabulary"):
        verify(compile_program(HIST, ["a", "b"], 3), inputs=["x"])


def test_a_wrong_model_is_found_and_the_counterexample_is_a_smallest():
    """With the value direction of 'b' unembedded as 'a', a single 'b' is enough to see it."""
    compiled = compile_program(tokens, ["a", "b"], 4)
    wrong = damaged(damaged(compiled, "unembed.W_U", (1, 1), 0), "unembed.W_U", (1, 0), 1)
    found = verify(wrong)
    assert not found.ok
    assert not found.exhaustive
    assert found.counterexample.tokens == ("b",)
    assert found.counterexample.expected == ["b"]
    assert found.counterexample.got == ["a"]
    assert re.search(r"^WRONG.*\['b'\].*\['b'\].*\['a'\]", str(found))


def test_counterexamples_of_samples_are_shrunk():
    compiled = compile_program(HIST, list(range(20)), 10)
    hist = compiled.variables["hist"]
    four = hist.values.index(4)
    wrong = damaged(compiled, "unembed.W_U", (hist.directions[four], four), 0)
    found = verify(wrong, inputs=[[3, 1, 3, 5, 3, 2, 3, 9]])
    assert found.counterexample.tokens == (0, 0, 0, 0)
    assert found.counterexample.expected == [4, 4, 4, 4]
    assert found.counterexample.got == [None] * 4


def test_a_model_that_hesitates_is_wrong_too():
    compiled = compile_program(tokens, ["a", "b"], 2)
    hesitant = damaged(compiled, "unembed.W_U", (0, 0), 0.7)
    found = verify(hesitant)
    assert not found.ok
    assert found.margin == pytest.approx(0.2)


def test_inputs_without_a_value_are_counted_and_cannot_be_wrong():
    found = verify(compile_program(Aggregate(EVERYTHING, tokens), ["a", "b"], 2, partial="allow"))
    assert found.ok
    assert (found.checked, found.undefined) == (6, 2)
    assert re.search("undefined.* 2 ", str(found))
    failing = verify(compile_program(Map(lambda t: 1 / t, tokens), [0, 1], 1, partial="allow"))
    assert (failing.checked, failing.undefined) == (2, 1)


def test_answers_are_compared_beside_a_position_that_has_none():
    place = SequenceMap(lambda token, place: token * (6 // place), tokens, indices)
    compiled = compile_program(place, [1, 2], 2, defined_on=[[1, 2], [2, 2]], defined_at=[1])
    found = verify(compiled)
    assert found.ok
    assert (found.checked, found.undefined, found.answers) == (6, 6, 4)
    wrong = verify(replace(compiled, program=SequenceMap(lambda token, place: 6 // place, tokens, indices)))
    assert wrong.counterexample.expected[1] != wrong.counterexample.got[1]
    with pytest.raises(CompileError, match="'place'"):
        compile_program(place.named("place"), [1, 2], 2, defined_on=[[1, 2]], defined_at=[0])


def test_a_branch_that_is_never_taken_is_read_too():
    """The graph drops it, and once the model was compiled though the program has no value."""
    program = rasp.Where(Map(lambda _: True, tokens), tokens, Map(lambda token: 1 // token, tokens))
    with pytest.raises(CompileError, match="undefined"):
        compile_program(program, [0, 1], 2, defined_on=[[0, 1]], defined_at=[0])
    assert verify(compile_program(program, [0, 1], 2, defined_on=[[0, 1]], defined_at=[1])).ok


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"defined_at": [0]}, "defined_at.*defined_on"),
        ({"defined_at": [], "defined_on": ["ab"]}, r"0 to 1.*\[\]"),
        ({"defined_at": [2], "defined_on": ["ab"]}, r"0 to 1.*\[2\]"),
        ({"defined_at": [-1], "defined_on": ["ab"]}, r"0 to 1.*\[-1\]"),
        ({"defined_at": "01", "defined_on": ["ab"]}, "0 to 1.*'01'"),
    ],
)
def test_positions_that_ask_nothing_are_refused(given, why):
    with pytest.raises(RaspLensError, match=why):
        compile_program(tokens, "ab", 2, **given)


def test_progress_is_reported():
    seen = []
    verify(compile_program(indices, ["a", "b"], 3), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 14), (6, 14), (14, 14)]


def test_the_sample_is_reproducible():
    compiled = compile_program(numerical(HIST), list(range(30)), 12)
    assert verify(compiled, samples=20, seed=1) == verify(compiled, samples=20, seed=1)


def test_a_program_without_any_value_is_not_verified_by_that():
    """The model cannot be wrong where the program has no value; but there is nothing that it is right about."""
    compiled = compile_program(Map(lambda t: t, tokens), ["a"], 2)
    found = verify(replace(compiled, program=Map(lambda t: 1 / 0, tokens)))
    assert found.undefined == found.checked == 2
    assert not found.ok
    assert str(found) == "NOTHING TO COMPARE: the program has no value on all 2 inputs"


def test_sizes_beyond_any_float_are_printed():
    compiled = compile_program(Map(lambda t: t, tokens), [0, 1, 2], 1_000)
    assert "1.9e477" in str(verify(compiled, inputs=[[0]]))


def test_checking_nothing_is_refused():
    compiled = compile_program(Map(lambda t: t, tokens), [0, 1], 2)
    with pytest.raises(ValueError, match="no sequence"):
        verify(compiled, inputs=[])


@pytest.mark.parametrize("period", [9, 16, 21])
def test_a_program_that_changes_its_mind_is_no_fault_of_the_model(period):
    """The compiler calls each function twice on the same arguments, and sees nothing of it."""
    calls = itertools.count()
    program = Map(lambda token: next(calls) // period % 2 == 0, tokens).named("moody")
    compiled = compile_program(program, ["a", "b"], 3)
    with pytest.raises(RaspLensError, match=r"'moody'.*deterministic.*\[.*\].*\[.*\]"):
        verify(compiled)
