"""The cost of a comparison: seconds, memory, and edge ablations beside one hooked forward pass for each edge.

python -m lab.compare --write docs/comparison-speed.md
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from lab.page import show, table
from rasplens.compare import StudiedModel, as_studied_model, compare
from rasplens.compare.config import PRESETS
from rasplens.compare.evidence.ablation.edges import Edge, attended_edges, edge_effects
from rasplens.compare.pipeline import STAGES
from rasplens.compile import CompiledModel, compile_program
from rasplens.learned import LearnedModel, load_pretrained
from rasplens.model import disguise
from rasplens.model.hook_points import act_name
from rasplens.tasks import Task, get_task

TASKS = ("sort", "copy", "compression")

INDUCTION, N_SYMBOLS = "induction", 150
"""The program of the copy task over so many symbols, compared with a disguise."""

ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to put the tables into")
    parser.add_argument("--one", choices=(*TASKS, INDUCTION), help=argparse.SUPPRESS)
    parser.add_argument("--config", choices=list(PRESETS), default="standard", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        print(json.dumps(whole_comparison(arguments.one, arguments.config)))
        return
    costs = [cost_table(config, wanted) for config, wanted in (("standard", 30), ("quick", 10))]
    text = "\n\n".join((*costs, edge_table()))
    show(text, arguments.write, "compare")


def _shipped(name: str) -> tuple[CompiledModel, LearnedModel, Task]:
    """A task's first program and the model that is shipped for it."""
    task = get_task(name)
    program = next(iter(task.programs.values()))
    return compile_program(program, task.vocab, task.n_ctx, mask=task.visible), load_pretrained(name), task


def _induction() -> tuple[CompiledModel, CompiledModel, Task]:
    """An induction model of two layers over many symbols, in disguise, beside its program."""
    task = get_task("copy", n_letters=N_SYMBOLS)
    compiled = compile_program(task.programs["induction"], task.vocab, task.n_ctx, mask=task.visible)
    return compiled, disguise(compiled, seed=1, basis="oblique", extra_width=8), task


def whole_comparison(name: str, config: str) -> dict[str, float]:
    """Seconds of each stage of a comparison, and the most memory, in a process of its own."""
    compiled, learned, task = _induction() if name == INDUCTION else _shipped(name)
    marks = []
    began = time.perf_counter()
    compare(
        compiled,
        learned,
        task=task,
        config=PRESETS[config],
        progress=lambda stage: marks.append((stage, time.perf_counter())),
    )
    ended = time.perf_counter()
    stages = {"pairing": marks[0][1] - began}
    for (stage, start), end in zip(marks, [*(mark[1] for mark in marks[1:]), ended], strict=True):
        stages[stage] = end - start
    return {**stages, "all": ended - began, "GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def cost_table(config: str, wanted: int) -> str:
    """One row per comparison: every stage in seconds, the whole, and memory."""
    rows = []
    for name in (*TASKS, INDUCTION):
        command = [sys.executable, "-m", "lab.compare", "--one", name, "--config", config]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        cost = json.loads(done.stdout)
        stages = [f"{cost[stage]:.1f}" for stage in ("pairing", *STAGES)]
        rows.append(
            [name, f"**{cost['all']:.0f}** (to reach: {wanted})", f"**{cost['GiB']:.1f}** (to reach: 2)", *stages]
        )
        print(rows[-1], flush=True)
    headings = ["comparison", "seconds", "GiB, torch included", "pairing", *STAGES]
    return f"### `{config}`, two cores\n\n{table(headings, rows)}"


def edge_table() -> str:
    """Edge ablations per second: batched against one hooked forward pass for each edge, in turns."""
    rows = []
    for name in TASKS:
        task = get_task(name)
        studied = as_studied_model(load_pretrained(name), task, task.held_out[:400])
        n = max(2, 400 // studied.targets.shape[1])
        few, edges = studied.first(n), attended_edges(studied.first(n))
        times: dict[str, list[float]] = {"ours": [], "one by one": []}
        for _ in range(ROUNDS):
            times["ours"].append(timed(partial(edge_effects, studied)))
            times["one by one"].append(timed(partial(one_by_one, few, edges)))
        # Ours also measures three methods of ablating, the control of the clean model, and three scores of each.
        rate = {what: len(edges) / min(seconds) for what, seconds in times.items()}
        rate["ours"] *= 3
        rows.append(
            [name, f"{len(edges)}", f"{n}", f"**{rate['ours'] / rate['one by one']:.1f}** (to reach: 10)",
             f"{rate['ours']:.0f}", f"{rate['one by one']:.0f}"]
        )  # fmt: skip
        print(rows[-1], flush=True)
    headings = ["model", "edges", "inputs", "ratio", "ours, edges per second", "one hooked pass for each"]
    return f"### Edge ablations\n\n{table(headings, rows)}"


def one_by_one(studied: StudiedModel, edges: list[Edge]) -> list[float]:
    """Zero ablation as a notebook does it: a hook that silences one edge, and a forward pass."""
    accuracies = []
    for edge in edges:

        def silence(pattern: torch.Tensor, hook: object, edge: Edge = edge) -> torch.Tensor:
            pattern = pattern.clone()
            pattern[:, :, edge.query, edge.key] = 0
            return pattern / pattern.sum(dim=-1, keepdim=True).clamp(min=1e-9)

        with torch.no_grad():
            logits = studied.model.run_with_hooks(
                studied.tokens, fwd_hooks=[(act_name("pattern", edge.layer), silence)]
            )
        answers = logits[:, list(studied.task.loss_positions)].argmax(dim=-1).numpy()
        accuracies.append(float(np.mean(answers == studied.targets)))
    return accuracies


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
