"""Programs that need only be defined on the inputs they are asked about."""

import pytest

from rasplens.compile import CompileError, UndefinedValue, compile_program, rasp, verify
from rasplens.errors import RaspLensError

EVERYWHERE = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
THE_WORD = rasp.Aggregate(EVERYWHERE, rasp.tokens).named("the_word")
"""Defined where all tokens are the same: different words have no mean."""

ALIKE = ["a", "aa", "bbb", "b"]


def test_a_program_may_be_undefined_outside_the_domain():
    with pytest.raises(CompileError, match="undefined"):
        compile_program(THE_WORD, "ab", 3)
    compiled = compile_program(THE_WORD, "ab", 3, domain=ALIKE)
    assert compiled("aa") == ["a", "a"]
    assert verify(compiled, inputs=ALIKE).ok
    with pytest.raises(UndefinedValue):
        compiled("ab")


def test_the_domain_itself_must_be_defined():
    with pytest.raises(CompileError, match="domain that was given contains this input"):
        compile_program(THE_WORD, "ab", 3, domain=["a", "ab"])


@pytest.mark.parametrize(("domain", "said"), [([], "holds no sequence"), (["abab"], "4 tokens"), (["xa"], "'x'")])
def test_a_domain_has_to_fit(domain, said):
    with pytest.raises(RaspLensError, match=said):
        compile_program(THE_WORD, "ab", 3, domain=domain)


def test_a_domain_changes_nothing_of_a_program_that_is_defined_everywhere():
    same = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ))
    plain, on_domain = compile_program(same, "ab", 3), compile_program(same, "ab", 3, domain=["ab"])
    assert plain.transformer.weights.keys() == on_domain.transformer.weights.keys()
    assert all((plain.transformer.weights[k] == w).all() for k, w in on_domain.transformer.weights.items())


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
    with pytest.raises(CompileError, match=r"Leave numerical\(\.\.\.\) out there, or write categorical"):
        compile_program(wrong(rasp.numerical), "ab", 2)
    for mended in (right, wrong(rasp.categorical)):
        assert verify(compile_program(mended, "ab", 2)).ok
