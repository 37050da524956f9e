"""Grades other people's tools on models whose circuit is known.

python -m lab.other_tools.graded --auto-circuit ENV/bin/python --circuit-kit ENV/bin/python --write docs/methods.md

A model is exported with its circuit and its pairs of inputs, the tool gives every edge a score, and these are
scored like any method's. A `HookedTransformer` sees the past alone, and so do these models.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lab.page import show, table

MODELS = {
    "induction": ["induction"],
    "histogram": ["histogram", "--vocab", "a,b,c", "--max-len", "5", "--causal"],
    "detect_pattern": ["detect_pattern", "--vocab", "a,b,c", "--max-len", "5", "--causal"],
    "most_frequent": ["most_frequent", "--vocab", "a,b,c", "--max-len", "5", "--causal"],
}
"""By the name of a program, how `rasplens methods` is asked for it."""

KINDS = "compiled", "planted"

TOOLS = {
    "auto-circuit, 1 point": ("auto_circuit", ["--points", "1"]),
    "auto-circuit, 50 points": ("auto_circuit", ["--points", "50"]),
    "CircuitKIT, EAP": ("circuit_kit", ["--method", "EAP"]),
    "CircuitKIT, EAP-IG-inputs": ("circuit_kit", ["--method", "EAP-IG-inputs"]),
    "CircuitKIT, EAP-IG-activations": ("circuit_kit", ["--method", "EAP-IG-activations"]),
}
"""By what a tool is asked for, its script and how it is called; one point is at the clean activations."""

OURS = "eap", "eap-ig-inputs", "eap-ig-activations", "exact"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for tool in ("--auto-circuit", "--circuit-kit"):
        parser.add_argument(tool, type=Path, required=True, help="the Python of its environment")
    parser.add_argument("--only", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    arguments = parser.parse_args()
    pythons = {"auto_circuit": arguments.auto_circuit, "circuit_kit": arguments.circuit_kit}
    columns: dict[str, dict[str, str]] = {}
    for name in arguments.only:
        for kind in KINDS:
            columns[f"{name}, {kind}"] = graded(MODELS[name], kind, pythons)
            print(name, kind, columns[f"{name}, {kind}"], file=sys.stderr, flush=True)
    rows = [
        [name, *(found.get(method, "–") for found in columns.values())]
        for method, name in ({tool: tool for tool in TOOLS} | {name: f"`{name}`" for name in OURS}).items()
    ]
    show(table(["method", *columns], rows), arguments.write, "other-tools")


def graded(model: list[str], kind: str, pythons: Mapping[str, Path]) -> dict[str, str]:
    """AUROC and average precision of each method on a model."""
    with tempfile.TemporaryDirectory() as folder:
        circuit = Path(folder) / "circuit.json"
        asked = ["methods", *model, "--kind", kind, "--metric", "logit_difference", "--one-token"]
        _run("rasplens", *asked, "--method", "random", "--export", str(circuit))
        for name, (tool, how) in TOOLS.items():
            script = Path(__file__).with_name(f"{tool}_scores.py")
            _run(str(pythons[tool]), str(script), str(circuit), str(Path(folder) / name), *how)
        files = [part for name in TOOLS for part in ("--scores", str(Path(folder) / name))]
        methods = [part for name in OURS for part in ("--method", name)]
        found = json.loads(_run("rasplens", *asked, *files, *methods, "--json"))["methods"]
    return {Path(one["method"]).name: f"{one['auroc']:.2f}, {one['average_precision']:.2f}" for one in found}


def _run(*command: str) -> str:
    """The output of a command."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
