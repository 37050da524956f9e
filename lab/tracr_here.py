"""Tracr's own compiler on its own programs, where the user has installed it; see `compile.py`."""

import importlib.util
import time
from collections.abc import Callable, Mapping
from typing import Any

PROGRAMS: Mapping[str, Callable[[Any, Any, int], Any]] = {
    "length": lambda lib, rasp, n: lib.make_length(),
    "reverse": lambda lib, rasp, n: lib.make_reverse(rasp.tokens),
    "reverse_v26_l24": lambda lib, rasp, n: lib.make_reverse(rasp.tokens),
    "hist": lambda lib, rasp, n: lib.make_hist(),
    "hist_v100_l32": lambda lib, rasp, n: lib.make_hist(),
    "frac_prevs_x": lambda lib, rasp, n: lib.make_frac_prevs(rasp.tokens == "x"),
    "frac_prevs_x_causal": lambda lib, rasp, n: lib.make_frac_prevs(rasp.tokens == "x"),
    "pair_balance": lambda lib, rasp, n: lib.make_pair_balance(rasp.tokens, "(", ")"),
    "shuffle_dyck2": lambda lib, rasp, n: lib.make_shuffle_dyck(pairs=["()", "{}"]),
    "shuffle_dyck2_l10": lambda lib, rasp, n: lib.make_shuffle_dyck(pairs=["()", "{}"]),
    "sort_unique": lambda lib, rasp, n: lib.make_sort_unique(rasp.tokens, rasp.tokens),
    "sort_unique_v50_l10": lambda lib, rasp, n: lib.make_sort_unique(rasp.tokens, rasp.tokens),
    "sort": lambda lib, rasp, n: lib.make_sort(rasp.tokens, rasp.tokens, max_seq_len=n, min_key=1),
    "sort_v50_l10": lambda lib, rasp, n: lib.make_sort(rasp.tokens, rasp.tokens, max_seq_len=n, min_key=1),
    "sort_freq": lambda lib, rasp, n: lib.make_sort_freq(max_seq_len=n),
    "count_a": lambda lib, rasp, n: lib.make_count(rasp.tokens, "a"),
    "count_less_freq_2": lambda lib, rasp, n: lib.make_count_less_freq(n=2),
    "detect_pattern_abc": lambda lib, rasp, n: lib.make_detect_pattern(rasp.tokens, "abc"),
    "nary_x_plus_y_minus_z": lambda lib, rasp, n: lib.make_nary_sequencemap(
        lambda x, y, z: x + y - z, rasp.tokens, rasp.tokens, rasp.indices
    ),
}
"""By the names of the recorded table, from Tracr's library, its language and the length."""


def is_installed() -> bool:
    """Whether Tracr can be imported."""
    return importlib.util.find_spec("tracr") is not None


def seconds(recorded: Mapping[str, Any]) -> float | None:
    """How long Tracr takes to compile a program of the table here; None if its library has no such program."""
    from tracr.compiler import compiling, lib
    from tracr.rasp import rasp

    name, length = recorded["name"], recorded["max_seq_len"]
    if name not in PROGRAMS:
        return None
    program = PROGRAMS[name](lib, rasp, length)
    began = time.perf_counter()
    compiling.compile_rasp_to_model(
        program, vocab=set(recorded["vocab"]), max_seq_len=length, causal=recorded["causal"], compiler_bos="BOS"
    )
    return time.perf_counter() - began
