import numpy as np
import pytest
from rasp_examples import PREVIOUS

from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.backend.residual_layout import Layout, encode, lay_out
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.ir import Domain, VariableNode
from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    Encoding,
    LinearSequenceMap,
    Map,
    Select,
    SelectorWidth,
    numerical,
    tokens,
)
from rasplens.compile.rasp.input_space import input_space


def layout_of(program, has_bos=True) -> Layout:
    finite = reachable_values(build_graph(program), input_space(["a", "b"], 3))
    return lay_out(finite, has_bos, fold=False)


def test_every_variable_has_directions_of_its_own_in_the_order_of_the_graph():
    layout = layout_of(Aggregate(PREVIOUS, tokens))
    assert list(layout.slices.values()) == [slice(0, 2), slice(2, 5), slice(5, 7)]
    assert layout.bos == 7
    assert layout.d_model == 8
    assert layout_of(tokens, has_bos=False).d_model == 2


def test_numbers_take_one_direction_and_a_second_if_they_can_be_undefined():
    always = numerical(tokens == "a")
    layout = layout_of(numerical(Aggregate(PREVIOUS, always)))
    widths = [s.stop - s.start for s in layout.slices.values()]
    assert widths == [2, 3, 1, 2]


def test_reading_gives_back_what_was_written():
    shifted = numerical(Aggregate(PREVIOUS, numerical(tokens == "a")))
    layout = layout_of(shifted)
    output = layout.graph.output
    for value in (False, True, None):
        residual = layout.encode(output, value) @ layout.write(output)
        assert residual @ layout.number(output) == (0 if value is None else value)
        assert residual @ layout.defined(output) == (value is not None)
    residual = layout.encode(0, "b") @ layout.write(0)
    np.testing.assert_array_equal(residual @ layout.onehot(0), [0, 1])
    np.testing.assert_array_equal(residual @ layout.position(), [1])
    np.testing.assert_array_equal(residual @ layout.defined(0), [1])


def test_everything_reads_as_undefined_at_the_bos():
    shifted = Aggregate(PREVIOUS, tokens, default="b").named("shifted")
    program = Aggregate(PREVIOUS, shifted)
    layout = layout_of(program)
    bos = layout.bos_content.copy()
    assert bos.sum() == 1  # the default of the inner aggregate
    bos[layout.bos] = 1
    for variable in layout.slices:
        assert not (bos @ layout.reading(variable)).any()
        assert not (bos @ layout.defined(variable)).any()
    assert bos @ layout.is_bos() == 1
    assert bos @ layout.position() == 0


def test_the_share_that_counts_is_blanked_at_the_bos_too():
    layout = layout_of(SelectorWidth(Select(tokens, tokens, Comparison.EQ)))
    share = 2
    assert layout.bos_content[layout.slices[share]] == 1
    bos = layout.bos_content.copy()
    bos[layout.bos] = 1
    assert bos @ layout.number(share) == 0


@pytest.mark.parametrize(
    ("encoding", "is_partial", "value", "expected"),
    [
        (Encoding.CATEGORICAL, False, 5, [0, 1]),
        (Encoding.CATEGORICAL, True, None, [0, 0]),
        (Encoding.NUMERICAL, False, 5, [5]),
        (Encoding.NUMERICAL, True, 3, [3, 1]),
        (Encoding.NUMERICAL, True, None, [0, 0]),
    ],
)
def test_encodings(encoding, is_partial, value, expected):
    node = VariableNode((), "x", tokens, encoding, Domain((3, 5), is_partial))
    np.testing.assert_array_equal(encode(node, value), expected)


def test_what_is_read_of_a_variable_is_written_in_its_place_if_it_is_no_wider():
    """As wide is narrow enough: what is read directly is written directly."""
    renamed = Map(str.upper, tokens)
    finite = reachable_values(build_graph(renamed), input_space(["a", "b"], 2))
    assert lay_out(finite, has_bos=False, fold=True).written == {0: (1,)}
    parts = Map(lambda t: t in "ab", tokens), Map(lambda t: t in "ac", tokens)
    wider = SelectorWidth(Select(parts[0], parts[1], Comparison.EQ) & Select(parts[1], parts[1], Comparison.EQ))
    finite = reachable_values(build_graph(wider), input_space(["a", "b", "c"], 2))
    assert lay_out(finite, has_bos=True, fold=True).written[0] == (0,)


@pytest.mark.parametrize("fold", [True, False])
def test_linear_forms_that_share_forms_are_read_once(fold):
    """Sixty forms of two uses each have 2⁶⁰ paths."""
    form = numerical(tokens)
    for _ in range(60):
        form = numerical(LinearSequenceMap(form, form, 0.25, 0.75))
    finite = reachable_values(build_graph(form), input_space([0, 3], 2))
    layout = lay_out(finite, has_bos=False, fold=fold)
    assert layout.can_read(finite.output)
    assert layout.reading(finite.output).shape == (layout.d_model, 1)
    read = layout.reading(finite.output)
    read[:] = 0
    assert layout.reading(finite.output).any()
