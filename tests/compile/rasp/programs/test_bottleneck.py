import doctest

import pytest

from rasplens.compile import compile_program, verify
from rasplens.compile.rasp.programs import bottleneck


def test_the_examples_in_the_docstrings():
    found = doctest.testmod(bottleneck)
    assert found.attempted > 0
    assert found.failed == 0


BOTH = pytest.mark.parametrize("build", [bottleneck.slots, bottleneck.read_both])


@BOTH
def test_compiled_it_equals_the_interpreter_on_every_input(build):
    found = verify(compile_program(build(), [0, 1, "SEP", "MASK"], 5, causal=True))
    assert found.ok
    assert found.exhaustive


@BOTH
def test_nothing_but_the_separator_ever_reads_a_digit(build):
    compiled = compile_program(build(), [0, 1, "SEP", "MASK"], 5, causal=True)
    _, cache = compiled.transformer.run_with_cache(compiled.encode([[0, 1, "SEP", "MASK", "MASK"]]))
    first, second = bottleneck.FIRST + 1, bottleneck.SECOND + 1  # behind the BOS
    for layer in range(compiled.transformer.config.n_layers):
        heads = [head for of_layer, head in compiled.heads if of_layer == layer]
        to_digits = cache[f"blocks.{layer}.attn.hook_pattern"][0, heads][:, :, [first, second]]
        outputs = to_digits[:, [bottleneck.FIRST_OUTPUT + 1, bottleneck.SECOND_OUTPUT + 1]]
        assert outputs.max(initial=0) < 1e-9
