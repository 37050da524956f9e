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


def test_what_rounding_tells_apart_is_remembered():
    domain = make_domain(NUMBERS, [0.1 + 0.2, 0.3, 0], is_partial=False)
    assert domain.values == (0, 0.3)
    assert domain.variants(1) == (0.3, 0.1 + 0.2)
    assert domain.variants(UNDEFINED) == domain.variants(2) == (None,)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "'n' is undefined whatever the input"),
        (["x"], "'n' is to be held as a number but can be 'x'"),
        ([float("inf")], "'n' can be inf, which no weight can hold"),
        ([10**400], "which no weight can hold"),
        ([2**24, 2**24 + 1], "too close together"),
        ([0, 1e-50], "too close together"),
        ([3e38], "which no weight can hold"),
        (range(30_000), "can take more than 20,000 values"),
    ],
)
def test_numbers_that_no_weights_can_hold_are_refused(values, message):
    with pytest.raises(CompileError, match=message):
        make_domain(NUMBERS, values, is_partial=False, max_values=20_000)


def test_codes_are_places_and_numbers_get_the_nearest():
    classes = coder(CLASSES, Domain(("a", True, 1), is_partial=False))
    assert [classes(value) for value in ("a", True, 1)] == [0, 1, 2]
    assert coder(NUMBERS, Domain((0, 0.5), is_partial=False))(0.5 + 1e-12) == 1


def test_a_node_knows_its_values_with_and_without_what_rounding_adds():
    domain = make_domain(NUMBERS, [0.3, 0.1 + 0.2], is_partial=True)
    node = VariableNode((), "n", indices, Encoding.NUMERICAL, domain)
    assert (node.values, node.raw_values) == ((0.3,), [0.3, 0.1 + 0.2])
    assert node.is_partial
    assert node.is_numerical
    assert held_number(node, 4.0) == 4
