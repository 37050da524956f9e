"""The one-layer models that copy blocks: “Attempting to reverse engineer one-layer transformers”."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go

from rasplens.compare.report.figures.panels import Panel, grid
from rasplens.model import Transformer
from rasplens.model.weight_circuits import copying_score, direct_path, full_ov_circuit
from rasplens.reproductions.reproduction import Finding, Reproduction, on_held_out
from rasplens.tasks import Task
from rasplens.tasks.completion import complete

WRITE_UP = "“Attempting to reverse engineer one-layer transformers”"

PROMPTS: Mapping[str, str] = {
    "ABCDEF": "one block",
    "ABCDEFABCDEF": "two blocks",
    "XYZRSTXYZRST": "two blocks",
    "ABCDEFXYZRST": "out of distribution",
    "QWERTYXYZRST": "out of distribution",
}
"""The prompts of the write-up."""


def _copy_findings(
    completions: Mapping[str, str], heads: str, direct: float, copies: bool
) -> Callable[[Task, Transformer], list[Finding]]:
    """The findings about a copying model, whose published completions and scores are given."""

    def findings(task: Task, model: Transformer) -> list[Finding]:
        circuits = [full_ov_circuit(model, 0, head) for head in range(model.config.n_heads)]
        scores = [copying_score(circuit) for circuit in circuits]
        straight = copying_score(direct_path(model))
        rows = [
            Finding("token accuracy, held-out blocks", "–", f"{task.accuracy(model).token:.4f}"),
            _completed(task, model, copies),
            Finding("copying scores of the heads", heads, ", ".join(f"{score:.2f}" for score in scores)),
            Finding("copying score of the sum of the heads", "0.9998" if not copies else "–",
                    f"{copying_score(np.sum(circuits, axis=0)):.4f}"),
            Finding("copying score of the direct path", f"{direct:.4f}", f"{straight:.4f}", straight < -0.99),
        ]  # fmt: skip
        for prompt, kind in PROMPTS.items():
            ours = completion(task, model, prompt)
            holds = (ours == prompt) == copies if kind == "two blocks" else None
            rows.append(Finding(f"completion of {prompt} ({kind})", completions[prompt], ours, holds))
        return rows

    return findings


def completed(task: Task, model: Transformer) -> float:
    """The share of held-out blocks of distinct letters that are continued without a mistake."""
    distinct = task.held_out[[len(set(block)) == 6 for block in task.held_out[:, :6].tolist()]]
    return float((complete(model, distinct[:, :12], task.n_ctx) == distinct).all(axis=1).mean())


def _completed(task: Task, model: Transformer, copies: bool) -> Finding:
    share = completed(task, model)
    theirs = "both prompts" if copies else "no prompt"
    measure = "12-letter prompts completed, of held-out blocks of different letters"
    return Finding(measure, theirs, f"{share:.4f}", share > 0.99 if copies else share < 0.01)


def completion(task: Task, model: Transformer, prompt: str) -> str:
    """Return the text that a copying model writes behind a prompt."""
    ids = np.array([[task.vocab.index(letter) for letter in prompt]])
    written = complete(model, ids, task.n_ctx)[0, len(prompt) :]
    return "".join(str(task.vocab[i]) for i in written)


def _copy_figures(task: Task, model: Transformer) -> Mapping[str, go.Figure]:
    pattern = on_held_out(task, model).pattern(0).mean(axis=0)
    panels = [
        Panel(f"head {head}, mean attention", rows, task.positions, task.positions)
        for head, rows in enumerate(pattern)
    ]
    return {"attention": grid(panels, columns=2, panel_height=400)}


COPY = Reproduction(
    name="copy",
    source=WRITE_UP,
    model="1 layer, 4 heads, d=32, sinusoids on queries and keys only, weight decay 1",
    task="copy",
    recipe="published",
    seed=0,
    findings=_copy_findings(
        {
            "ABCDEF": "ECECECECECECECECEC",
            "ABCDEFABCDEF": "CFCFCFCFCFCF",
            "XYZRSTXYZRST": "TSTSZSTSTSZST",
            "ABCDEFXYZRST": "FEFEFEFEFEFE",
            "QWERTYXYZRST": "YTYTYTYTYTYT",
        },
        "0.69, 0.86, 0.98, 0.58",
        -0.9996,
        copies=False,
    ),
    figures=_copy_figures,
)
"""The model that does not learn to copy."""

COPY_SMEARED = replace(
    COPY,
    name="copy_smeared",
    model="the same with smeared keys",
    recipe="smeared",
    findings=_copy_findings(
        {
            "ABCDEF": "EFEFEFEFEFEFEFEFEF",
            "ABCDEFABCDEF": "ABCDEFABCDEF",
            "XYZRSTXYZRST": "XYZRSTXYZRST",
            "ABCDEFXYZRST": "FXYZRSTFXYZR",
            "QWERTYXYZRST": "YXYXYXYXYXYX",
        },
        "−0.71, 1.00, 1.00, −0.86",
        -0.9999,
        copies=True,
    ),
)
"""The model that does, with a step from each key to the next."""
