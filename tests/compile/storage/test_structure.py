from dataclasses import replace

import numpy as np
import pytest

from rasplens.compile import compile_program, programs, rasp
from rasplens.compile.storage.structure import check_structure, widths
from rasplens.compile.variable import Axes


@pytest.fixture(scope="module")
def compiled():
    return compile_program(programs.histogram(), "ab", 3)


def changed(compiled, **more):
    """The model with another field in its result's variable."""
    name = compiled.output
    return replace(compiled, variables={**compiled.variables, name: replace(compiled.variables[name], **more)})


def test_what_the_compiler_makes_is_in_order(compiled):
    check_structure(compiled)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: replace(model, has_pad=not model.has_pad), "2 tokens.*d_vocab"),
        (lambda model: replace(model, output="other"), "'other'.*variables"),
        (lambda model: replace(model, heads={(9, 0): "x"}), "head 0.* layer 9"),
        (lambda model: replace(model, heads={(0, True): "x"}), "head True.* layer 0"),
        (lambda model: replace(model, neurons={(0, 3, 3): "x"}), "neurons 3 to 3"),
        (lambda model: changed(model, written_at="nowhere"), "'nowhere'.*hook point"),
        (lambda model: changed(model, place=Axes(np.array([999]))), "outside.*residual stream"),
        (lambda model: changed(model, place=Axes(np.array([-1]))), "outside.*residual stream"),
        (lambda model: changed(model, values=(1, 1, 2)), r"values.*\(1, 1, 2\)"),
        (lambda model: changed(model, columns=np.full((7, 1), np.nan)), "not finite"),
    ],
)
def test_what_does_not_fit_is_named(compiled, change, message):
    with pytest.raises(ValueError, match=message):
        check_structure(change(compiled))


def test_numbers_take_one_direction_or_two():
    assert widths(rasp.Encoding.NUMERICAL, 7) == (1, 2)
    assert widths(rasp.Encoding.CATEGORICAL, 7) == (7,)
