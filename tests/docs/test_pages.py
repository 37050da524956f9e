"""The pages and examples do what they say: their code is run."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SLOW = {
    "reading-a-comparison.md",
    "testing-circuits.md",
    "experiments.md",
    "many-models.md",
    "methods.md",
    "compression.md",
    "own-model.md",
    "own-task.md",
    "siit.md",
    "training.md",
    "findings.md",
    "induction.md",
    "sort.md",
    "copy.md",
    "compare_two_programs.py",
    "train_on_a_program.py",
}
"""What compiles trainings, or compares at full size."""


def code_of(page):
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S))


def each(paths):
    """Parameters, of which some are slow."""
    return [
        pytest.param(path, marks=pytest.mark.slow if path.name in SLOW else (), id=path.name) for path in paths
    ]


@pytest.mark.parametrize("page", each(page for page in PAGES if code_of(page)))
def test_the_code_of_a_page_runs(page, monkeypatch):
    """In this process, where what is heavy is imported already, in a namespace of its own."""
    monkeypatch.chdir(ROOT)
    exec(compile(code_of(page), page.name, "exec"), {"__name__": "__main__"})


def test_code_runs_in_an_interpreter_of_its_own():
    """One page that needs nothing heavy; the README's is run above."""
    code = code_of(ROOT / "docs" / "language.md")
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)


@pytest.mark.slow
def test_the_readme_runs_in_an_interpreter_of_its_own():
    subprocess.run([sys.executable, "-c", code_of(ROOT / "README.md")], check=True, capture_output=True, cwd=ROOT)


@pytest.mark.parametrize("example", each(EXAMPLES))
def test_an_example_runs_and_is_short(example, capsys):
    assert len(example.read_text().splitlines()) <= 60
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_the_readmes_table_is_the_benchmarks():
    text = (ROOT / "README.md").read_text()
    rows = re.search(r"<!-- tasks: begin -->\n(.*?)\n<!-- tasks: end -->", text, flags=re.S).group(1).splitlines()
    assert [row.split("|")[1].split()[0] for row in rows[2:]] == ["induction", "sort", "copy", "compression"]
    assert not any("WRONG" in row for row in rows)


def test_the_compilers_table_is_the_benchmarks_and_keeps_its_promises():
    text = (ROOT / "docs" / "compiler.md").read_text()
    table = re.search(r"<!-- compile: begin -->\n(.*?)\n<!-- compile: end -->", text, flags=re.S).group(1)
    rows = re.findall(r"^\| (\w+) \| ([\d.]+) \| .*? \| (\d+) / (\d+) \|", table, flags=re.M)
    assert len(rows) == 20
    assert all(float(ratio) <= 1 and int(ours) <= int(tracrs) for _, ratio, ours, tracrs in rows)
    means = [float(mean) for mean in re.findall(r"(\d\.\d+) in the geometric mean", table)]
    assert len(means) == 2
    assert max(means) <= 0.2
    assert "WRONG" not in table
    words = text.partition("Above 0.5 stay")[2]
    assert all(f"`{name}`" in words for name, ratio, *_ in rows if float(ratio) > 0.5)


def test_every_reproduction_has_its_table():
    from rasplens.reproductions import REPRODUCTIONS

    text = (ROOT / "docs/reproductions.md").read_text()
    sections = re.findall(r"^### (\w+)$", text, flags=re.M)
    assert sections == [*REPRODUCTIONS, "grid"]
    for name in REPRODUCTIONS:
        assert f"    rasplens reproduce {name}\n" in text


def test_training_is_measured_beside_the_published_loops():
    text = (ROOT / "docs/training.md").read_text()
    measured = re.search(r"<!-- train: begin -->\n(.*?)\n<!-- train: end -->", text, flags=re.S).group(1)
    assert [line for line in measured.splitlines() if line.startswith("### ")][1:] == [
        "### To the published accuracy",
        "### How a step of the sorting model grows, ms",
    ]
