from model_sizes import size

from rasplens.compile import compile_program, load_compiled, programs
from rasplens.compile.rasp import Comparison, Select, SelectorWidth, tokens

EQUAL = Select(tokens, tokens, Comparison.EQ)


def test_selectors_read_only_what_tells_keys_apart():
    count = programs.count("a")
    quotient = size(count, ["domain-quotient", "views"], vocab="abcdef")
    assert quotient.d_model < size(count, ["views"], vocab="abcdef").d_model


def test_a_kind_says_what_it_is_of_also_when_it_is_read_back(tmp_path):
    twice = Select(tokens, SelectorWidth(EQUAL).named("count"), lambda key, count: count > 1)
    compiled = compile_program(SelectorWidth(twice).named("repeated"), "ab", 3)
    kinds = {name: one.kind_of for name, one in compiled.variables.items() if one.kind_of is not None}
    assert kinds == {"count (kind)": "count"}
    compiled.save(tmp_path / "model.safetensors")
    again = load_compiled(tmp_path / "model.safetensors")
    assert {name: one.kind_of for name, one in again.variables.items()} == {
        name: one.kind_of for name, one in compiled.variables.items()
    }
