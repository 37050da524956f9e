"""The predicted size of a model, beside the model itself."""

import pytest
from rasp_examples import EQUAL, EVERYTHING

from rasplens.compile import CompileError, CompileLimits, compile_program
from rasplens.compile.backend.residual_layout import lay_out
from rasplens.compile.backend.schedule import schedule
from rasplens.compile.backend.size import predicted_size
from rasplens.compile.frontend.defined_program import defined_program
from rasplens.compile.frontend.undefined_inputs import DefinedOn
from rasplens.compile.rasp import Aggregate, Map, SelectorWidth, SequenceMap, indices, numerical, tokens
from rasplens.compile.rasp.input_space import input_space
from rasplens.compile.rasp.programs import reverse, sort

PROGRAMS = {
    "tokens": tokens,
    "map": Map(lambda t: t % 3, tokens),
    "pairs": SequenceMap(lambda t, i: (t * i) % 7, tokens, indices),
    "mean": numerical(Aggregate(EVERYTHING, numerical(tokens))),
    "width": SelectorWidth(EQUAL),
    "reverse": reverse(),
    "sort": sort(),
}


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_is_at_least_the_size_of_the_model_and_not_much_more(program, fold):
    space = input_space(range(6), 5)
    layout = lay_out(defined_program(program, space, DefinedOn("forbid")).whole, has_bos=True, fold=fold)
    predicted = predicted_size(layout, schedule(layout), space)
    model = compile_program(program, range(6), 5, bos=True, optimize=["views"] if fold else False).transformer
    actual = sum(array.nbytes for array in model.weights.values()) + model.mask.nbytes
    assert actual <= predicted.total <= 4 * actual
    neurons = [array.nbytes for name, array in model.weights.items() if ".mlp.W" in name]
    assert sum(neurons) <= predicted.neurons


@pytest.mark.parametrize(
    ("program", "vocab", "max_len", "message"),
    [
        (
            tokens,
            "ab",
            1_000_000,
            r"max_len=1,000,000.*7,450\.6 GiB.*max_bytes",
        ),
        (tokens, range(20_000), 2, r"3\.0 GiB.*2\.0 GiB.*'tokens' \(20,000\)"),
    ],
)
def test_what_would_not_fit_is_refused_before_it_is_made(program, vocab, max_len, message):
    with pytest.raises(CompileError, match=message):
        compile_program(program, vocab, max_len, optimize=False, limits=CompileLimits(max_values=2_000_000))


def test_the_limit_can_be_set():
    few, many = CompileLimits(max_bytes=10_000), CompileLimits(max_bytes=100_000)
    with pytest.raises(CompileError, match=r"4\d\.\d KiB.*9\.8 KiB.*max_bytes"):
        compile_program(sort(), range(6), 5, limits=few)
    assert compile_program(sort(), range(6), 5, limits=many)([3, 1, 2]) == [1, 2, 3]
