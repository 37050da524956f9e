"""What Lindner et al. 2023 found in section 5, with the fast recipe; docs/compression.md has more widths."""

import pytest

from rasplens.compile import compile_program, compress
from rasplens.compile.compression.evaluation import baseline, evaluate
from rasplens.compile.programs.catalogue import CATALOGUE

pytestmark = pytest.mark.slow


def compiled(name, **options):
    entry = CATALOGUE[name]
    return compile_program(entry.build(), entry.vocab, entry.max_len, **dict(entry.options), **options)


def test_frac_prevs_keeps_its_answers_in_six_directions_and_in_three_but_not_in_one():
    program = compiled("frac_prevs", optimize=False, bos=True)
    one, three, six = compress(program, [1, 3, 6])
    for model in (three, six):
        found = evaluate(model)
        assert found.exhaustive
        assert found.token > 0.999
        assert evaluate(baseline(model)).token < 0.6
    assert evaluate(one).token < 0.8
    features = evaluate(six).features.set_index("feature")
    for token in ("tokens:a", "tokens:b", "tokens:c"):
        assert features.loc[token, "kept"] < 0.1  # the program does not look at them
    for needed in ("tokens:x", "is_x", "frac_prevs"):
        assert features.loc[needed, "kept"] > 0.5


def test_sort_unique_answers_right_with_a_target_that_became_a_number():
    model = compress(compiled("sort_unique", optimize=False), 10)
    found = evaluate(model)
    assert found.token > 0.99
    variables = found.variables.set_index("variable")
    target = variables.loc["target_pos"]
    assert target["cosine"] < 0.7
    assert target["one_direction"] > 0.8
    assert target["ordered"] > 0.9
    assert variables.drop(index="target_pos")["cosine"].min() > 0.9
    assert found.cosine < 0.9
