"""Programs that write a number digit by digit, each from the question and the digit before: a scratchpad.

The question is written as people do, the largest digit first; the answer begins with the ones. What was written so
far holds every carry, so that the depth does not grow with the number of digits.
"""

from rasplens.compile.rasp.language import Aggregate, Select, Selector, SequenceMap, SOp, causal, indices, tokens
from rasplens.compile.rasp.programs.described import described


@described
def addition(n_digits: int) -> SOp:
    """The next digit of a sum of two numbers with `n_digits` digits each, the ones first.

    A carry follows from the digits before and from what was written there: with digits that add up to 9, there is
    one if that is 0.

    Causal-safe: it reads the past.

    Example:
        >>> addition(2)([1, 7, "+", 2, 5, "=", 2, 4])[-3:]
        [2, 4, 0]
    """
    end = 2 * n_digits + 1  # where "=" stands, and the ones are asked for
    first = _digit_of(n_digits - 1, n_digits, end, "first number")
    second = _digit_of(end - 1, n_digits, end, "second number")
    total = SequenceMap(_sum, first[0], second[0]).named("total")
    before = SequenceMap(_sum, first[1], second[1]).named("total_before")
    carry = SequenceMap(lambda t, written: int(t > 9 or (t == 9 and written == 0)), before, tokens).named("carry")
    return causal(SequenceMap(lambda t, one: (t + one) % 10, total, carry)).named("addition")


@described
def multiplication(n_digits: int) -> SOp:
    """The next digit of the product of a number with `n_digits` digits and one digit, the ones first.

    What was carried into the digit before is at most 8, so that what was written there tells it.

    Causal-safe: it reads the past.

    Example:
        >>> multiplication(2)([4, 7, "*", 6, "=", 2, 8])[-3:]
        [2, 8, 2]
    """
    end = n_digits + 2
    own, before = _digit_of(n_digits - 1, n_digits, end, "number")
    factor = Aggregate(Select(indices, indices, lambda key, query: key == end - 1), tokens, 0).named("factor")
    product = SequenceMap(_product, own, factor).named("product")
    product_before = SequenceMap(_product, before, factor).named("product_before")
    carry = SequenceMap(lambda p, written: (p + (_value(written) - p) % 10) // 10, product_before, tokens)
    return causal(SequenceMap(lambda p, one: (p + one) % 10, product, carry.named("carry"))).named(
        "multiplication"
    )


@described
def parity(n_bits: int) -> SOp:
    """Whether an odd number of bits so far are 1: one for each of `n_bits` bits, of which the last is the answer.

    Causal-safe: it reads the past.

    Example:
        >>> parity(3)([1, 0, 1, "=", 1, 1])[-3:]
        [1, 1, 0]
    """
    next_bit = Select(indices, indices, lambda key, query: key == query - n_bits and key < n_bits)
    bit = Aggregate(next_bit.named("next bit"), tokens, 0).named("bit")
    return causal(SequenceMap(lambda x, written: (_value(x) + _value(written)) % 2, bit, tokens)).named("parity")


@described
def increment(n_bits: int) -> SOp:
    """The next bit of a binary number with `n_bits` bits, plus one, the ones first.

    Causal-safe: it reads the past.

    Example:
        >>> increment(3)([0, 1, 1, "=", 0, 0, 1])[-4:]
        [0, 0, 1, 0]
    """
    bit, before = _digit_of(n_bits - 1, n_bits, n_bits, "number")
    place = (indices == n_bits).named("is_first")
    carry = SequenceMap(lambda x, written: int(x == 1 and written == 0), before, tokens).named("carry")
    carries = SequenceMap(lambda one, is_first: int(one or is_first), carry, place).named("adds_one")
    return causal(SequenceMap(lambda x, one: (_value(x) + one) % 2, bit, carries)).named("increment")


def _digit_of(ones: int, n_digits: int, end: int, name: str) -> tuple[SOp, SOp]:
    """The digit of a number at the place that is asked for, and the one before it; 0 where there is none.

    Args:
        ones: Where the ones of the number stand.
        n_digits: How many digits it has.
        end: Where the ones of the answer are asked for.
        name: What to call the number.
    """

    def at(shift: int) -> Selector:
        return Select(
            indices,
            indices,
            lambda key, query: ones - n_digits < key <= ones and key == ones - (query - end - shift),
        )

    own, before = at(0).named(f"{name}: this place"), at(1).named(f"{name}: the place before")
    return (
        Aggregate(own, tokens, 0).named(f"{name}'s digit"),
        Aggregate(before, tokens, 0).named(f"{name}'s digit before"),
    )


def _value(token: object) -> int:
    """A digit's value; 0 for signs, which stand where nothing is asked for."""
    return token if isinstance(token, int) else 0


def _sum(first: object, second: object) -> int:
    return _value(first) + _value(second)


def _product(first: object, second: object) -> int:
    return _value(first) * _value(second)
