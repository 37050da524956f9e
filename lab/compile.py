"""Size and speed of the compiler, beside Tracr's.

    python -m lab.compile                          prints the tables
    python -m lab.compile --write docs/compiler.md  puts them between the page's markers

Tracr's figures were recorded once, by running it unmodified on two CPU cores (`lab/tracr.json`); ours
are measured here, and Tracr's times, too, where it is installed. Parameters are counted as Tracr counts them:
all but the unembedding.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tracr_here
from scipy.stats import gmean

from lab.page import show
from lab.tracr_sources import SOURCES
from rasplens.compile import CompiledModel, compile_program, programs, rasp, verify
from rasplens.compile.rasp import SOp, indices, tokens
from rasplens.compile.rasp.programs.catalogue import CATALOGUE

RECORDED = json.loads((Path(__file__).parent / "tracr.json").read_text())

PROGRAMS: dict[str, Callable[[], SOp]] = {
    "length": programs.length,
    "reverse": programs.reverse,
    "reverse_v26_l24": programs.reverse,
    "hist": programs.histogram,
    "hist_v100_l32": programs.histogram,
    "frac_prevs_x": lambda: programs.frac_prevs(tokens == "x"),
    "frac_prevs_x_causal": lambda: programs.frac_prevs(tokens == "x"),
    "pair_balance": lambda: programs.pair_balance("(", ")"),
    "shuffle_dyck2": lambda: programs.shuffle_dyck(["()", "{}"]),
    "shuffle_dyck2_l10": lambda: programs.shuffle_dyck(["()", "{}"]),
    "sort_unique": programs.sort_unique,
    "sort_unique_v50_l10": programs.sort_unique,
    "sort": programs.sort,
    "sort_v50_l10": programs.sort,
    "sort_freq": programs.sort_by_frequency,
    "count_a": lambda: programs.count("a"),
    "count_less_freq_2": lambda: programs.count_less_frequent(2),
    "shift_by_1": lambda: programs.shift_by(1),
    "detect_pattern_abc": lambda: programs.detect_pattern("abc"),
    "nary_x_plus_y_minus_z": lambda: programs.nary_map(lambda x, y, z: x + y - z, tokens, tokens, indices),
}

GROWTH = [("reverse", programs.reverse, size, length) for size, length in ((10, 8), (30, 32), (100, 64))] + [
    ("sort", programs.sort, size, length) for size, length in ((10, 10), (50, 10), (48, 48))
]

RECORDED_SECONDS = {("reverse", 100, 64): 34.9, ("sort", 48, 48): 46.0}
"""Of Tracr, in process, for its own programs of these names."""

RECORDED_PROCESS = (6.7, 474)
"""Of Tracr: seconds and MiB of a whole process that compiles sort over 50 values, length 10, and calls it."""

COSTS = {
    "`reverse` over 2 symbols at length 1024": ("programs.reverse(), 'ab', 1024", 4.0),
    "a map over 5,000 tokens": ("rasp.Map(lambda token: token % 7, rasp.tokens), range(5_000), 3", 1.0),
    "`sort` over 100 values at length 8": ("programs.sort(), range(100), 8", 0.5),
    "`sort` over 10 values at length 128": ("programs.sort(), range(10), 128", 1.0),
    "Tracr's own `sort` over 50 values at length 10": ("tracr_sort(), range(50), 10", 0.6),
}
"""Programs that are large in one way, and in how many seconds each is to be compiled."""

COST = """
import time
from rasplens.compile import compile_program, programs, rasp

def tracr_sort():
    keys = rasp.SequenceMap(lambda token, index: token + index / 10, rasp.tokens, rasp.indices)
    smaller = rasp.Select(keys, keys, rasp.Comparison.LT)
    place = rasp.Select(rasp.SelectorWidth(smaller), rasp.indices, rasp.Comparison.EQ)
    return rasp.Aggregate(place, rasp.tokens)

began = time.perf_counter()
model = compile_program({})
seconds = time.perf_counter() - began
status = open("/proc/self/status").read()
weights = sum(array.nbytes for array in model.transformer.weights.values()) / 2**20
print(seconds, int(status.split("VmHWM:")[1].split()[0]) / 1024, weights)
"""
"""Prints the seconds, the most memory that the process ever held and the size of the weights, in MiB."""

VERIFIED_AT, VERIFIED = 10, 20_000
"""At this length, on so many random inputs, programs are verified; on a thousand by the plain interpreter too."""

PROCESS = """
from rasplens.compile import compile_program, programs
model = compile_program(programs.sort(), range(50), 10)
assert model([3, 1, 2]) == [1, 2, 3]
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) / 1024)
"""
"""Prints the most memory that it ever held, in MiB."""


@dataclass(frozen=True)
class Compiled:
    """A compiled program and what it took."""

    model: CompiledModel
    seconds: float

    @property
    def parameters(self) -> int:
        """All but the unembedding."""
        return self.model.transformer.n_params - self.model.transformer.W_U.size


def timed(program: SOp, vocab: list, max_len: int, **options: object) -> Compiled:
    """The best of three compilations."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        model = compile_program(rasp.causal(program), vocab, max_len, **options)  # type: ignore[arg-type]
        seconds.append(time.perf_counter() - began)
    return Compiled(model, min(seconds))


def program_row(recorded: dict) -> tuple[list[str], tuple[float, float]]:
    """One line of the table of programs, and the ratios of parameters: of our program, and of Tracr's source."""
    name = recorded["name"]
    arguments = PROGRAMS[name](), recorded["vocab"], recorded["max_seq_len"]
    ours = timed(*arguments, causal=recorded["causal"])
    plain = timed(*arguments, causal=recorded["causal"], optimize=False)
    check = verify(ours.model, samples=500)
    config, ratio = ours.model.transformer.config, ours.parameters / recorded["n_params"]
    source = same_source(recorded)
    cells = [
        name,
        f"{ratio:.3f}",
        f"{source:.3f}",
        f"{ours.parameters:,} / {recorded['n_params']:,}",
        f"{plain.parameters / recorded['n_params']:.3f}",
        f"{config.n_layers} / {recorded['n_layers']}",
        f"{config.d_model} / {recorded['d_model']}",
        f"{config.d_mlp} / {recorded['d_mlp']}",
        f"{1_000 * ours.seconds:.0f} ms / {1_000 * recorded['compile_seconds']:.0f} ms",
        f"{check.margin:.3f}" if check.ok else f"WRONG: {check}",
    ]
    if tracr_here.is_installed():
        theirs = tracr_here.seconds(recorded)
        cells.append("-" if theirs is None else f"{ours.seconds / theirs:.4f} ({1_000 * theirs:.0f} ms)")
    return cells, (ratio, source)


def same_source(recorded: dict) -> float:
    """The ratio of parameters where the program is written as in Tracr's library, operation by operation."""
    program = rasp.causal(SOURCES[recorded["name"]](recorded["max_seq_len"]))
    model = compile_program(program, recorded["vocab"], recorded["max_seq_len"], causal=recorded["causal"])
    if not (check := verify(model, samples=500)).ok:
        raise AssertionError(f"{recorded['name']} as in Tracr's library: {check}")
    return Compiled(model, 0.0).parameters / recorded["n_params"]


def program_table() -> str:
    """Every recorded program, and the geometric mean of the ratios."""
    rows = [program_row(recorded) for recorded in RECORDED]
    headings = [
        "program",
        "ratio",
        "ratio, Tracr's source",
        "parameters",
        "ratio, not optimised",
        "layers",
        "d_model",
        "d_mlp",
        "time",
        "margin",
    ]
    if tracr_here.is_installed():
        headings.append("time, ratio to Tracr here")
    table = markdown(headings, [cells for cells, _ in rows])
    ours, source = zip(*(ratios for _, ratios in rows), strict=True)
    means = [f"{gmean(ratios):.3f} in the geometric mean (at most {max(ratios):.3f})" for ratios in (ours, source)]
    return (
        f"{table}\n\nFigures are ours / Tracr's. The ratio of parameters is {means[0]} for our programs, "
        f"{means[1]} for the same operations in the same order as in Tracr's library."
    )


def growth_table() -> str:
    """Time over growing vocabulary and length."""
    rows = []
    for name, program, size, length in GROWTH:
        ours = timed(program(), list(range(size)), length)
        tracr = RECORDED_SECONDS.get((name, size, length))
        rows.append([
            f"{name}, {size} symbols, length {length}",
            f"{ours.seconds / tracr:.4f}" if tracr else "-",
            f"{1_000 * ours.seconds:.0f} ms",
            f"{tracr:.1f} s" if tracr else "-",
            f"{ours.parameters:,}",
        ])  # fmt: skip
    return markdown(["program", "ratio", "ours", "Tracr, recorded", "parameters"], rows)


def cost_table() -> str:
    """Seconds and memory of large programs, each in a process of its own."""
    rows = []
    for name, (arguments, wanted) in COSTS.items():
        source = COST.replace("{}", arguments)
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", source], check=True, capture_output=True, text=True)
        whole = time.perf_counter() - began
        seconds, memory, weights = map(float, done.stdout.split())
        times = f"{seconds:.2f} s", f"{wanted} s", f"{whole:.2f} s"
        rows.append([name, *times, f"{memory:.0f} MiB", f"{weights:.0f} MiB"])
    headings = ["program", "compiled in", "to reach", "the whole process", "its memory", "weights"]
    return markdown(headings, rows)


def verify_table() -> str:
    """How fast the programs of the library are verified."""
    rows = []
    for name, entry in CATALOGUE.items():
        model = compile_program(
            entry.build(), entry.vocab, VERIFIED_AT, **{"partial": "allow", **dict(entry.options)}
        )
        began = time.perf_counter()
        check = verify(model, samples=VERIFIED)
        rate = check.checked / (time.perf_counter() - began)
        rows.append(
            [f"`{name}`", f"{len(entry.vocab)}", f"{rate:,.0f}", f"{check.margin:.3f}" if check.ok else "WRONG"]
        )
    title = f"Sequences verified per second at length {VERIFIED_AT} (to reach: 20,000)"
    return markdown(["program", "tokens", title, "margin"], rows)


def process_line() -> str:
    """The whole process, start of Python included: the best of three."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", PROCESS], check=True, capture_output=True, text=True)
        seconds.append(time.perf_counter() - began)
    memory = float(done.stdout)
    tracr_seconds, tracr_memory = RECORDED_PROCESS
    return (
        f"A whole process that compiles `sort` over 50 values at length 10 and calls it once: ratio "
        f"{min(seconds) / tracr_seconds:.3f} in time ({min(seconds):.2f} s / {tracr_seconds} s), "
        f"{memory / tracr_memory:.3f} in memory ({memory:.0f} MiB / {tracr_memory} MiB)."
    )


def markdown(headings: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    arguments = parser.parse_args()
    text = "\n\n".join([process_line(), program_table(), growth_table(), cost_table(), verify_table()])
    show(text, arguments.write, "compile")


if __name__ == "__main__":
    main()
