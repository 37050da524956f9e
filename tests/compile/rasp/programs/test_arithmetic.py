"""Programs that write numbers: each answer, and what they write by themselves."""

import itertools

import numpy as np
import pytest

from rasplens.compile import compile_program, programs, verify
from rasplens.errors import RaspLensError


def ones_first(number, n, base=10):
    return [number // base**place % base for place in range(n)]


def asked(number, n, base=10):
    return ones_first(number, n, base)[::-1]


@pytest.fixture(scope="module")
def adder():
    return compile_program(programs.arithmetic.addition(2), [*range(10), "+", "="], 8, causal=True)


def test_sums_are_written_digit_by_digit(adder):
    for first, second in [(0, 0), (99, 99), (95, 5), (45, 54), (45, 55), (9, 1), (17, 25)]:
        question = [*asked(first, 2), "+", *asked(second, 2), "="]
        assert adder.generate(question, 3) == ones_first(first + second, 3)


def test_all_sums_behind_the_right_digits(adder):
    """The answer at each place where one is asked for, from the interpreter and from the weights."""
    texts = [
        [*asked(first, 2), "+", *asked(second, 2), "=", *ones_first(first + second, 3)[:-1]]
        for first, second in itertools.product(range(0, 100, 7), repeat=2)
    ]
    wanted = [ones_first(a + b, 3) for a, b in itertools.product(range(0, 100, 7), repeat=2)]
    assert [row[-3:] for row in adder.run_batch(texts)] == wanted
    assert [adder.interpret(text)[-3:] for text in texts[:20]] == wanted[:20]


def test_binary_numbers_plus_one():
    compiled = compile_program(programs.arithmetic.increment(4), [0, 1, "="], 9, causal=True)
    assert verify(compiled, samples=200).ok
    for number in range(16):
        assert compiled.generate([*asked(number, 4, 2), "="], 5) == ones_first(number + 1, 5, 2)
    assert compiled.transformer.config.n_layers <= 3


def test_products_with_a_digit_and_parity():
    times = compile_program(programs.arithmetic.multiplication(2), [*range(10), "*", "="], 7, causal=True)
    for first, second in [(0, 7), (99, 9), (47, 6), (25, 4), (50, 2), (89, 0)]:
        question = [*asked(first, 2), "*", second, "="]
        assert times.generate(question, 3) == ones_first(first * second, 3)
    compiled = compile_program(programs.arithmetic.parity(4), [0, 1, "="], 8, causal=True)
    for bits in itertools.product([0, 1], repeat=4):
        assert compiled.generate([*bits, "="], 4) == [sum(bits[: i + 1]) % 2 for i in range(4)]


def test_an_answer_that_is_no_token_ends_it(adder):
    compiled = compile_program(programs.length(), "ab", 3)
    with pytest.raises(RaspLensError, match="no token to go on with"):
        compiled.generate("ab", 1)
    with pytest.raises(RaspLensError):
        adder.generate([1, 7, "+", 2, 5, "="], 9)  # too long
    assert adder.generate([1, 7, "+", 2, 5, "="], 0) == []


@pytest.mark.slow
def test_a_stock_model_writes_all_sums_of_one_digit(tmp_path):
    """By `generate` of transformers, without our code."""
    import torch
    from transformers import AutoModelForCausalLM

    compiled = compile_program(programs.arithmetic.addition(1), [*range(10), "+", "="], 5, causal=True)
    compiled.to_huggingface(tmp_path / "adder")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "adder")
    pairs = list(itertools.product(range(10), repeat=2))
    ids = torch.as_tensor(compiled.encode([[a, "+", b, "="] for a, b in pairs]))
    given = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=2, do_sample=False, pad_token_id=0
    )
    np.testing.assert_array_equal(given[:, -2:], [ones_first(a + b, 2) for a, b in pairs])
