"""Fifty single lines, each broken on purpose: which of them do the tests notice?

    python tests/tools/mutants.py                     every mutant; exit code 1 if one survives
    python tests/tools/mutants.py --only values       those whose line contains a text
    python tests/tools/mutants.py --tree FOLDER       of another checkout, such as an older one

A mutant is a line and what takes its place. Its module is found by the line itself, so that moving a module moves
its mutants; where an older checkout had other names, `was` holds both in its words. A mutant is tried on the tests
that mirror the module, and where these pass, on those of its folder and act. A test notices a mutant if it fails
with it and passes without it. Every mutant runs in a copy of the checkout.
"""

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MUTANTS = Path(__file__).with_suffix(".toml")

ACTS = ("compile", "learned", "compare", "model", "tasks")

SURVIVES, NOT_THERE = "SURVIVES", "NOT THERE"

NO_FAILURES = (0, 5)
"""Exit codes of pytest: all passed; there was nothing to run, since all of it is slow."""


@dataclass(frozen=True)
class Mutant:
    """One line of an act, and what takes its place; and both as an older checkout has them, where that differs."""

    act: str
    line: str
    instead: str
    was: dict[str, str] | None = None

    @property
    def wordings(self) -> list[tuple[str, str]]:
        """The line and what takes its place, the latest first."""
        return [(self.line, self.instead), *([(self.was["line"], self.was["instead"])] if self.was else [])]


def load() -> list[Mutant]:
    """The mutants of `mutants.toml`."""
    return [Mutant(**fields) for fields in tomllib.loads(MUTANTS.read_text())["mutants"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[2], help="the checkout")
    parser.add_argument("--only", default="", help="mutants whose line contains this")
    arguments = parser.parse_args()
    chosen = [mutant for mutant in load() if arguments.only in mutant.line]
    ends = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        kept_out = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "*.egg-info", "runs")
        shutil.copytree(arguments.tree, tree, symlinks=True, ignore=kept_out)
        for mutant in chosen:
            ends.append(end_of(mutant, tree))
            print(f"{ends[-1]:100} {mutant.act}: {mutant.line.strip()[:70]}", flush=True)
    survivors, absent = ends.count(SURVIVES), ends.count(NOT_THERE)
    print(f"{len(chosen) - survivors - absent} of {len(chosen)} die, {survivors} survive, {absent} are not there")
    return bool(survivors)


def end_of(mutant: Mutant, tree: Path) -> str:
    """The test that notices a mutant, the nearest that does; or `SURVIVES`, or `NOT_THERE`."""
    for line, instead in mutant.wordings:
        if module := module_of(line, mutant.act, tree):
            whole = module.read_text()
            broken = whole.replace(line, instead)
            ast.parse(broken)
            return next(noticing(module, whole, broken, tree), SURVIVES)
    return NOT_THERE


def noticing(module: Path, whole: str, broken: str, tree: Path) -> Iterator[str]:
    """The tests that fail with a module broken and pass with it whole, the first that does so of each group."""
    tried: set[Path] = set()
    for tests in nearest_tests(module.relative_to(tree), tree):
        new = [str(path.relative_to(tree)) for path in tests if path not in tried]
        tried |= set(tests)
        failing_anyway: list[str] = []
        while new:
            module.write_text(broken)
            try:
                failed = first_failure(new, failing_anyway, tree)
            finally:
                module.write_text(whole)
            if failed is None:
                break
            if first_failure([failed], [], tree) is None:
                yield failed
                break
            failing_anyway.append(failed)


def module_of(line: str, act: str, tree: Path) -> Path | None:
    """The one module that holds a line, of its act if that has it; None if no module does."""
    for folder in (act, *(other for other in ACTS if other != act)):
        found = [path for path in (tree / folder).rglob("*.py") if line in path.read_text()]
        if len(found) > 1 or any(path.read_text().count(line) > 1 for path in found):
            raise SystemExit(f"{line!r} stands more than once, in {', '.join(map(str, found))}. Mend the mutant.")
        if found:
            return found[0]
    return None


def nearest_tests(module: Path, tree: Path) -> list[list[Path]]:
    """The test file that mirrors a module; those of its folder; those of its act."""
    folder = tree / "tests" / module.parent
    own = folder / f"test_{module.name}"
    act = tree / "tests" / module.parts[0]
    return [[own] if own.exists() else [], sorted(folder.glob("test_*.py")), sorted(act.rglob("test_*.py"))]


def first_failure(tests: list[str], left_out: list[str], tree: Path) -> str | None:
    """The first of some tests that fails; None if none does."""
    failures = tree / "failures"
    shutil.rmtree(failures, ignore_errors=True)
    deselected = [option for test in left_out for option in ("--deselect", test)]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-o", f"cache_dir={failures}", *deselected, *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode in NO_FAILURES:
        return None
    recorded = failures / "v" / "cache" / "lastfailed"
    if not recorded.exists():
        raise SystemExit(f"pytest did not get to the tests: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return next(iter(json.loads(recorded.read_text())))


if __name__ == "__main__":
    sys.exit(main())
