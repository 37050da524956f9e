"""Programs with the same operations, in the same order, as in Tracr's library; see `compile.py`.

Ours are often written otherwise. These are to be compiled as they stand.
"""

from collections.abc import Callable, Sequence

from rasplens.compile.rasp import (
    Aggregate,
    Comparison,
    LinearSequenceMap,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    SOp,
    Value,
    indices,
    length,
    numerical,
    tokens,
)


def make_length() -> SOp:
    return SelectorWidth(Select(tokens, tokens, Comparison.TRUE))


def make_reverse() -> SOp:
    opposite = length - indices - 1
    return Aggregate(Select(indices, opposite, Comparison.EQ), tokens)


def make_hist() -> SOp:
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ))


def make_frac_prevs(bools: SOp) -> SOp:
    previous = Select(indices, indices, Comparison.LEQ)
    return numerical(Aggregate(previous, numerical(bools), default=0))


def make_pair_balance(opening: Value, closing: Value) -> SOp:
    opened, closed = (make_frac_prevs(numerical(tokens == one)) for one in (opening, closing))
    return numerical(LinearSequenceMap(opened, closed, 1, -1))


def make_shuffle_dyck(pairs: Sequence[str]) -> SOp:
    balances = [make_pair_balance(*pair) for pair in pairs]
    any_negative = balances[0] < 0
    all_zero = balances[0] == 0
    for balance in balances[1:]:
        any_negative = any_negative | (balance < 0)
        all_zero = all_zero & (balance == 0)
    everywhere = Select(indices, indices, Comparison.TRUE)
    share_negative = numerical(Aggregate(everywhere, numerical(Map(lambda x: x, any_negative)), default=0))
    has_negative = Map(lambda x: x > 0, share_negative)
    last_zero = Aggregate(Select(indices, length - 1, Comparison.EQ), all_zero)
    return last_zero & ~has_negative


def make_sort_unique(values: SOp, keys: SOp) -> SOp:
    target = SelectorWidth(Select(keys, keys, Comparison.LT))
    return Aggregate(Select(target, indices, Comparison.EQ), values)


def make_sort(values: SOp, keys: SOp, max_seq_len: int) -> SOp:
    return make_sort_unique(values, SequenceMap(lambda key, index: key + index / max_seq_len, keys, indices))


def make_sort_freq(max_seq_len: int) -> SOp:
    return make_sort(tokens, -1 * make_hist(), max_seq_len)


def make_count(token: Value) -> SOp:
    return SelectorWidth(Select(tokens, tokens, lambda key, query: key == token))


def make_count_less_freq(n: int) -> SOp:
    histogram = make_hist()
    return SelectorWidth(Select(histogram, histogram, lambda key, query: key <= n))


def make_shift_by(offset: int, of: SOp) -> SOp:
    return Aggregate(Select(indices, indices, lambda key, query: query == key + offset), of, default=None)


def make_detect_pattern(pattern: str) -> SOp:
    detectors = [make_shift_by(offset, tokens == letter) for offset, letter in enumerate(reversed(pattern))]
    detected = detectors.pop()
    while detectors:
        detected = detected & detectors.pop()
    return detected


def make_nary(function: Callable[..., Value], *arguments: SOp) -> SOp:
    first, second, *others = arguments
    joined: SOp = SequenceMap(lambda x, y: (x, y), first, second)
    for other in others:
        joined = SequenceMap(lambda x, y: (*x, y), joined, other)
    return Map(lambda values: function(*values), joined)


SOURCES: dict[str, Callable[[int], SOp]] = {
    "length": lambda n: make_length(),
    "reverse": lambda n: make_reverse(),
    "reverse_v26_l24": lambda n: make_reverse(),
    "hist": lambda n: make_hist(),
    "hist_v100_l32": lambda n: make_hist(),
    "frac_prevs_x": lambda n: make_frac_prevs(tokens == "x"),
    "frac_prevs_x_causal": lambda n: make_frac_prevs(tokens == "x"),
    "pair_balance": lambda n: make_pair_balance("(", ")"),
    "shuffle_dyck2": lambda n: make_shuffle_dyck(["()", "{}"]),
    "shuffle_dyck2_l10": lambda n: make_shuffle_dyck(["()", "{}"]),
    "sort_unique": lambda n: make_sort_unique(tokens, tokens),
    "sort_unique_v50_l10": lambda n: make_sort_unique(tokens, tokens),
    "sort": lambda n: make_sort(tokens, tokens, n),
    "sort_v50_l10": lambda n: make_sort(tokens, tokens, n),
    "sort_freq": make_sort_freq,
    "count_a": lambda n: make_count("a"),
    "count_less_freq_2": lambda n: make_count_less_freq(2),
    "shift_by_1": lambda n: make_shift_by(1, tokens),
    "detect_pattern_abc": lambda n: make_detect_pattern("abc"),
    "nary_x_plus_y_minus_z": lambda n: make_nary(lambda x, y, z: x + y - z, tokens, tokens, indices),
}
"""By the names of the recorded table, from the length."""
