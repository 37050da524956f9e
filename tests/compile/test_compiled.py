import itertools

import numpy as np
import pytest
import torch
from rasp_examples import HIST

from rasplens.compile import UndefinedValue, compile_program, rasp
from rasplens.compile.rasp import Encoding, Map, numerical, tokens
from rasplens.compile.variable import Variable, nearest

CLASSES = Variable("c", Encoding.CATEGORICAL, ("x", "y", "z"), np.eye(3), np.arange(3), "blocks.0.hook_resid_post")
NUMBERS = Variable("n", Encoding.NUMERICAL, (0.0, 0.1, 5.0), np.eye(2), np.arange(2), "blocks.0.hook_resid_post")


@pytest.fixture(scope="module")
def compiled():
    return compile_program(HIST, ["a", "b"], 4)


def test_it_is_called_like_the_program(compiled):
    assert compiled(["b", "a", "b"]) == HIST(["b", "a", "b"]) == compiled.interpret(["b", "a", "b"])
    assert compiled("abba") == [2, 2, 2, 2]


def test_batches_have_one_length(compiled):
    assert compiled.run_batch(["ab", "a", "aa"]) == [[1, 1], [1], [2, 2]]
    with pytest.raises(ValueError, match="must have one length: the model knows no padding"):
        compiled.encode(["ab", "a"])


def test_inputs_that_do_not_fit_are_refused(compiled):
    with pytest.raises(ValueError, match="The sequence has 5 tokens; the model takes 1 to max_len=4"):
        compiled("aaaaa")
    with pytest.raises(ValueError, match="Token 'c' at position 1 is not in the vocabulary"):
        compiled("ac")


def test_the_trace_has_every_variable_without_the_bos(compiled):
    codes = compiled.trace(np.array([[0, 1, 0]]))
    assert set(codes) == set(compiled.variables)
    np.testing.assert_array_equal(codes["tokens"], [[0, 1, 0]])
    values = compiled.variables["hist"].values
    assert [values[code] for code in codes["hist"][0]] == [2, 1, 2]


def test_classes_are_decoded_from_one_hots():
    codes, errors = nearest(CLASSES, np.array([[0.0, 1, 0], [0, 0, 0], [0.1, 0.8, 0], [0.5, 0.5, 0]]))
    np.testing.assert_array_equal(codes, [1, -1, 1, -1])
    np.testing.assert_allclose(errors, [0, 0, 0.2, 0.5])


def test_numbers_are_decoded_to_the_nearest_in_units_of_the_gap():
    codes, errors = nearest(NUMBERS, np.array([[0.02], [0.1], [4.0]]))
    np.testing.assert_array_equal(codes, [0, 1, 2])
    np.testing.assert_allclose(errors, [0.2, 0, 1 / 4.9])


def test_numbers_that_can_be_undefined_say_so():
    codes, errors = nearest(NUMBERS, np.array([[0.0, 1.0], [0.0, 0.0], [3.0, 0.1], [0.1, 0.7]]))
    np.testing.assert_array_equal(codes, [0, -1, -1, 1])
    np.testing.assert_allclose(errors, [0, 0, 0.1, 0.3])


def test_mixtures_are_refused():
    with pytest.raises(
        UndefinedValue, match=r"'c' holds no single value but a mixture \(0.60 of 'y', 0.40 of 'x'"
    ):
        CLASSES.decode(np.array([[0.4, 0.6, 0.0]]))
    with pytest.raises(
        UndefinedValue, match=r"'n' holds no single value but a mixture \(2.5, between its values\)"
    ):
        NUMBERS.decode(np.array([[2.5]]))


def test_the_summary_is_one_line(compiled):
    assert repr(compiled).startswith(
        "CompiledModel('hist': 2 tokens, max_len=4, with BOS, 3 variables, Transformer("
    )
    assert "\n" not in repr(compiled)
    assert compile_program(numerical(tokens), [1], 1).output == "tokens as numerical"


@pytest.mark.parametrize("causal", [True, False])
def test_the_bridge_answers_the_same(causal):
    program = rasp.causal(Map(lambda n: n % 2, HIST)).named("parity")
    compiled = compile_program(program, ["a", "b"], 4, causal=causal)
    bridge = compiled.to_bridge()
    for length in range(1, 5):
        sequences = list(itertools.product("ab", repeat=length))
        with torch.no_grad():
            logits = bridge(torch.tensor(compiled.encode(sequences))).numpy()[:, compiled.offset :]
        codes = compiled.variables["parity"].decode(logits)
        values = compiled.variables["parity"].values
        assert [[values[code] for code in row] for row in codes] == compiled.run_batch(sequences)


def test_a_mask_of_its_own_has_no_bridge():
    strict = np.tri(4, k=-1, dtype=bool)
    with pytest.raises(ValueError, match="mask is neither"):
        compile_program(HIST, ["a", "b"], 4, mask=strict).to_bridge()
