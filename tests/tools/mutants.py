"""Forty single lines, each broken on purpose: which of them do the tests notice?

    python tests/tools/mutants.py                     every mutant; exit code 1 if one survives that has to die
    python tests/tools/mutants.py --only values       those whose line contains a text
    python tests/tools/mutants.py --tree FOLDER       of another checkout, such as an older one

A mutant is a line and what takes its place. Its module is found by the line itself, so that moving a module moves
its mutants. It is tried on the tests that mirror the module, and where these pass, on those of its folder and
act. Every mutant runs in a copy of the checkout.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

MUTANTS = Path(__file__).with_suffix(".toml")

ACTS = ("compile", "learned", "compare", "model", "tasks")


@dataclass(frozen=True)
class Mutant:
    """One line of an act, and what takes its place."""

    act: str
    line: str
    instead: str


def load() -> list[Mutant]:
    """The mutants of `mutants.toml`."""
    return [Mutant(**fields) for fields in tomllib.loads(MUTANTS.read_text())["mutants"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[2], help="the checkout")
    parser.add_argument("--only", default="", help="mutants whose line contains this")
    arguments = parser.parse_args()
    survivors = []
    chosen = [mutant for mutant in load() if arguments.only in mutant.line]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        kept_out = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "*.egg-info", "runs")
        shutil.copytree(arguments.tree, tree, symlinks=True, ignore=kept_out)
        for mutant in chosen:
            killer = killed_by(mutant, tree)
            print(f"{killer or 'SURVIVES':60} {mutant.act}: {mutant.line.strip()[:70]}", flush=True)
            if killer is None:
                survivors.append(mutant)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} die")
    return bool(survivors)


def killed_by(mutant: Mutant, tree: Path) -> str | None:
    """The tests that notice a mutant: the nearest that do; None if all pass."""
    module = module_of(mutant, tree)
    whole = module.read_text()
    broken = whole.replace(mutant.line, mutant.instead)
    ast.parse(broken)
    module.write_text(broken)
    try:
        tried: set[Path] = set()
        for tests in nearest_tests(module.relative_to(tree), tree):
            new = [path for path in tests if path not in tried]
            tried |= set(new)
            if new and not passes(new, tree):
                return " ".join(str(path.relative_to(tree)) for path in new[:2]) + (" …" if len(new) > 2 else "")
        return None
    finally:
        module.write_text(whole)


def module_of(mutant: Mutant, tree: Path) -> Path:
    """The one module that holds a mutant's line."""
    acts = [mutant.act, *(act for act in ACTS if act != mutant.act)]
    for act in acts:
        found = [path for path in (tree / act).rglob("*.py") if mutant.line in path.read_text()]
        if found:
            break
    if len(found) != 1 or found[0].read_text().count(mutant.line) != 1:
        raise SystemExit(f"{len(found)} modules hold the line {mutant.line!r}, where one should. Mend the mutant.")
    return found[0]


def nearest_tests(module: Path, tree: Path) -> list[list[Path]]:
    """The test file that mirrors a module; those of its folder; those of its act."""
    folder = tree / "tests" / module.parent
    own = folder / f"test_{module.name}"
    act = tree / "tests" / module.parts[0]
    return [[own] if own.exists() else [], sorted(folder.glob("test_*.py")), sorted(act.rglob("test_*.py"))]


def passes(tests: list[Path], tree: Path) -> bool:
    """Whether some tests pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *map(str, tests)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
