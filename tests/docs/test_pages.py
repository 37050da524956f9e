"""The pages and examples do what they say: their code is run."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

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
    "start.md",
    "explaining.md",
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


class Fused(torch.nn.Module):
    """A block in nanoGPT's shape: one call for all of attention."""

    def __init__(self, width, n_heads):
        super().__init__()
        self.ln_1, self.attn = torch.nn.LayerNorm(width), torch.nn.Module()
        self.attn.c_attn, self.attn.c_proj = (
            torch.nn.Linear(width, 3 * width, bias=False),
            torch.nn.Linear(width, width),
        )
        self.attn.n_head, self.attn.n_embd = n_heads, width
        self.attn.forward = self.attend

    def attend(self, x):
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.attn.c_attn(x).chunk(3, -1))
        gathered = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attn.c_proj(gathered.transpose(1, 2).flatten(2))

    def forward(self, x):
        return x + self.attn(self.ln_1(x))


class NanoGPT(torch.nn.Module):
    """A model in nanoGPT's shape: logits of the last position only, unless there are targets."""

    def __init__(self, n_tokens, n_ctx, width=16):
        super().__init__()
        parts = {"wte": torch.nn.Embedding(n_tokens, width), "wpe": torch.nn.Embedding(n_ctx, width)}
        self.transformer = torch.nn.ModuleDict(parts)
        self.transformer["h"] = torch.nn.ModuleList(Fused(width, 2) for _ in range(2))
        self.lm_head, self.config = torch.nn.Linear(width, n_tokens), SimpleNamespace(n_head=2)

    def forward(self, ids, targets=None):
        x = self.transformer["wte"](ids) + self.transformer["wpe"].weight[: ids.shape[1]]
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(x if targets is not None else x[:, [-1]]), None


@pytest.mark.slow
def test_the_recipe_for_nanogpt_gives_its_logits(monkeypatch):
    monkeypatch.chdir(ROOT)
    page = {"__name__": "__main__"}
    exec(compile(code_of(ROOT / "docs" / "howto" / "own-model.md"), "own-model.md", "exec"), page)
    torch.manual_seed(0)
    theirs, ids = NanoGPT(5, 8), torch.randint(5, (3, 8))
    adapted = page["adapt_nanogpt"](theirs, 8, 5)
    torch.testing.assert_close(adapted(ids), theirs(ids, targets=ids)[0])
    assert "blocks.1.attn.hook_attn_scores" in adapted.hook_dict
