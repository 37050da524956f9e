"""Programs that need only be defined on the inputs they are asked about."""

from dataclasses import replace

import pytest

from rasplens.compile import (
    CompileError,
    CompileLimits,
    UndefinedValue,
    compile_program,
    load_compiled,
    programs,
    rasp,
    verify,
)
from rasplens.errors import RaspLensError

EVERYWHERE = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
THE_WORD = rasp.Aggregate(EVERYWHERE, rasp.tokens).named("the_word")
"""Defined where all tokens are the same: different words have no mean."""

ALIKE = ["a", "aa", "bbb", "b"]


def test_a_program_may_be_undefined_outside_the_domain():
    with pytest.raises(CompileError, match="'the_word' is undefined"):
        compile_program(THE_WORD, "ab", 3)
    compiled = compile_program(THE_WORD, "ab", 3, domain=ALIKE)
    assert compiled("aa") == ["a", "a"]
    assert verify(compiled, inputs=ALIKE).ok
    with pytest.raises(UndefinedValue):
        compiled("ab")


def test_the_domain_itself_must_be_defined():
    with pytest.raises(CompileError, match=r"'the_word'.*\['a', 'b'\].*domain.*defined_on"):
        compile_program(THE_WORD, "ab", 3, domain=["a", "ab"])


@pytest.mark.parametrize(("domain", "said"), [([], "`domain`.*sequence"), (["abab"], "4 tokens"), (["xa"], "'x'")])
def test_a_domain_has_to_fit(domain, said):
    with pytest.raises(RaspLensError, match=said):
        compile_program(THE_WORD, "ab", 3, domain=domain)


def test_a_domain_of_all_sequences_changes_nothing():
    same = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ))
    plain = compile_program(same, "ab", 3)
    on_all = compile_program(same, "ab", 3, domain=list(plain.inputs))
    assert plain.transformer.weights.keys() == on_all.transformer.weights.keys()
    assert all((plain.transformer.weights[k] == w).all() for k, w in on_all.transformer.weights.items())


def test_what_the_domain_does_not_reach_is_left_out():
    total = rasp.tokens + rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k == 0), rasp.tokens)
    domain = [[a, b] for a in range(9) for b in range(9) if a + b == 8]
    plain, on_domain = compile_program(total, range(9), 2), compile_program(total, range(9), 2, domain=domain)
    assert set(on_domain.variables[on_domain.output].values) == {8, *range(0, 17, 2)}
    assert on_domain.transformer.config.d_mlp < plain.transformer.config.d_mlp / 2
    assert [on_domain(tokens) for tokens in domain] == [total(tokens) for tokens in domain]


def test_outside_of_its_domain_a_model_says_nothing(tmp_path):
    reverse = programs.reverse()
    compiled = compile_program(reverse, "ab", 3, domain=ALIKE)
    compiled.save(tmp_path / "model.safetensors")
    for model in (compiled, load_compiled(tmp_path / "model.safetensors")):
        assert model("bbb") == ["b", "b", "b"]
        for ask in (model, model.trace, lambda tokens, model=model: model.run_batch([tokens])):
            with pytest.raises(UndefinedValue, match=r"\['a', 'b'\].* 4 sequences"):
                ask("ab")
        found = verify(model)
        assert found.ok
        assert (found.checked, found.total, found.exhaustive) == (4, 4, True)
        with pytest.raises(UndefinedValue, match=r"\['a', 'b'\].* 4 sequences"):
            verify(model, inputs=["ab"])


def test_a_counterexample_lies_in_the_domain():
    compiled = compile_program(programs.reverse(), "ab", 3, domain=ALIKE)
    weights = {name: 0 * array for name, array in compiled.transformer.weights.items()}
    wrong = replace(compiled, transformer=replace(compiled.transformer, weights=weights))
    found = verify(wrong).counterexample
    assert found is not None
    assert "".join(found.tokens) in ALIKE


def test_a_constant_has_a_value_where_all_sequences_have_its_length():
    constant = rasp.ConstantSOp([1, 2])
    with pytest.raises(CompileError, match=r"length 2.*check_length"):
        compile_program(constant, "ab", 2)
    assert compile_program(constant, "ab", 2, domain=["ab", "aa"])("ab") == [1, 2]


def test_a_program_may_have_to_be_defined_on_some_sequences_alone():
    compiled = compile_program(THE_WORD, "ab", 3, defined_on=["a", "bb"])
    assert compiled("aaa") == ["a", "a", "a"]
    with pytest.raises(UndefinedValue):
        compiled("ab")
    with pytest.raises(CompileError, match=r"'the_word'.*\['a', 'b'\].*domain.*defined_on"):
        compile_program(THE_WORD, "ab", 3, defined_on=["a", "ab"], partial="allow")


NO_NUMBER = rasp.numerical(rasp.Map(lambda token: "many" if token == 9 else token, rasp.tokens))


def test_what_the_message_about_too_many_inputs_advises_helps():
    few = CompileLimits(executed_inputs=5)
    with pytest.raises(CompileError, match=r"`domain`.*executed_inputs"):
        compile_program(NO_NUMBER, [1, 2, 9], 2, limits=few)
    assert verify(compile_program(NO_NUMBER, [1, 2, 9], 2, domain=[[1], [2], [1, 2]], limits=few)).ok


ITSELF = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.EQ)
WORDS = rasp.Map(lambda token: token, rasp.tokens).named("words")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (lambda mark: mark(WORDS), WORDS),
        (lambda mark: mark(rasp.tokens), rasp.tokens),
        (lambda mark: rasp.Aggregate(ITSELF, mark(rasp.tokens)), rasp.Aggregate(ITSELF, rasp.tokens)),
        (lambda mark: rasp.Map(lambda x: x, mark(WORDS)), rasp.Map(lambda x: x, WORDS)),
    ],
)  # fmt: skip
def test_what_the_message_about_numbers_advises_helps(wrong, right):
    with pytest.raises(CompileError, match=r"numerical\(\.\.\.\).*categorical\(\.\.\.\)"):
        compile_program(wrong(rasp.numerical), "ab", 2)
    for mended in (right, wrong(rasp.categorical)):
        assert verify(compile_program(mended, "ab", 2)).ok
