import pytest

from rasplens.compile import CompileError
from rasplens.compile.analysis.domains import coder, held_number, make_domain
from rasplens.compile.ir import UNDEFINED, Domain, HeldNode, VariableNode
from rasplens.compile.rasp import Encoding, indices

CLASSES = HeldNode((), "c", indices, Encoding.CATEGORICAL)
NUMBERS = HeldNode((), "n", indices, Encoding.NUMERICAL)


def test_classes_keep_their_types_and_their_order():
    assert make_domain(CLASSES, [1, True, "a", 1, 1.0], is_partial=False).values == (1, True, "a", 1.0)


def test_numbers_are_put_in_order_and_into_one_form():
    domain = make_domain(NUMBERS, [2.0, True, 0.5, 2], is_partial=True)
    assert domain.values == (0.5, 1, 2)
    assert [type(value) for value in domain.values] == [float, int, int]


def test_numbers_are_one_only_if_they_are_equal():
    domain = make_domain(NUMBERS, [0.1 + 0.2, 0.3, -0.0, 0, 10**18, 10**18 + 1], is_partial=False)
    assert domain.values == (0, 0.3, 0.1 + 0.2, 10**18, 10**18 + 1)


def test_a_code_stands_for_a_value_or_for_none():
    domain = Domain(("a", "b"), is_partial=True)
    assert [domain.value(code) for code in (0, 1, 2, UNDEFINED)] == ["a", "b", None, None]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "'n' is undefined"),
        (["x"], r"'n'.*numerical\(\.\.\.\).*'x'"),
        ([float("inf")], "'n'.*inf.*weight"),
        ([10**400], "'n'.*10000.*weight"),
        ([3e38], r"'n'.*3e\+38.*weight"),
        (range(30_000), "'n'.* 20,000 values"),
    ],
)
def test_numbers_that_no_weights_can_hold_are_refused(values, message):
    with pytest.raises(CompileError, match=message):
        make_domain(NUMBERS, values, is_partial=False, max_values=20_000)


def test_codes_are_places():
    classes = coder(CLASSES, Domain(("a", True, 1), is_partial=False))
    assert [classes(value) for value in ("a", True, 1)] == [0, 1, 2]
    assert coder(NUMBERS, Domain((0, 1), is_partial=False))(1.0) == 1


def test_a_node_knows_its_domain():
    node = VariableNode((), "n", indices, Encoding.NUMERICAL, make_domain(NUMBERS, [0.3, 1.0], is_partial=True))
    assert node.values == (0.3, 1)
    assert node.is_partial
    assert node.is_numerical
    assert held_number(node, 4.0) == 4
