"""What the published documents trained and found, again: one entry for each, with their figures beside ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from rasplens.compare import StudiedModel, as_studied_model
from rasplens.compare.analyses import (
    attention_leakage,
    average_attention,
    critical_edges,
    flow_figure,
    logit_terms,
    position_separability,
    sorting_heuristics,
)
from rasplens.compare.report.panels import Panel, grid, names, signed_limits
from rasplens.learned import LearnedModel, Recipe, train
from rasplens.model import Transformer
from rasplens.model.weight_circuits import copying_score, direct_path, full_ov_circuit, score_terms
from rasplens.tasks import Task, get_task
from rasplens.tasks.completion import complete

FRESH_LISTS = 20_000
"""Lists on which the sorting model is measured; none of the seed's own choosing."""


@dataclass(frozen=True)
class Finding:
    """One published figure beside ours.

    Attributes:
        measure: What is measured.
        theirs: The published figure, as it is published.
        ours: The same, of the model trained here.
        holds: Whether ours is what theirs says, or better; None where nothing is claimed.
    """

    measure: str
    theirs: str
    ours: str
    holds: bool | None = None


@dataclass(frozen=True)
class Reproduction:
    """A published model and what was found in it.

    Attributes:
        name: On the command line.
        source: Who published it.
        model: What it is, in a line.
        task: The name of its task.
        recipe: The name of the recipe that trains it here.
        seed: The seed.
        findings: From the task and a trained model, the published figures and ours.
        figures: From the same, figures by name.
    """

    name: str
    source: str
    model: str
    task: str
    recipe: str
    seed: int
    findings: Callable[[Task, Transformer], list[Finding]]
    figures: Callable[[Task, Transformer], Mapping[str, go.Figure]]

    @property
    def command(self) -> str:
        """What reproduces it."""
        return f"rasplens reproduce {self.name}"

    def train(self, recipe: Recipe | None = None, **options: Any) -> LearnedModel:
        """The model, trained here.

        Args:
            recipe: Instead of its own, for a smaller budget.
            options: What else `rasplens.learned.train` takes.
        """
        return train(self.task, recipe or self.recipe, self.seed, **options)

    def check(self, learned: LearnedModel) -> list[Finding]:
        """The published figures beside those of a model."""
        return self.findings(get_task(self.task), learned.transformer)

    def write_figures(self, learned: LearnedModel, folder: Path) -> list[Path]:
        """Draws the figures, each as one page that opens offline."""
        paths = []
        for name, figure in self.figures(get_task(self.task), learned.transformer).items():
            path = folder / f"{self.name}_{name}.html"
            figure.write_html(path, include_plotlyjs=True)
            paths.append(path)
        return paths


def _at_least(measure: str, theirs: str, ours: float, floor: float) -> Finding:
    return Finding(measure, theirs, f"{ours:.4f}", ours >= floor)


def _sort_findings(task: Task, model: Transformer) -> list[Finding]:
    fresh = task.draw(np.random.default_rng(1), FRESH_LISTS)
    found = sorting_heuristics(model, task)
    return [
        _at_least(
            "token accuracy on 20,000 fresh lists",
            "0.9945 (one batch), 0.9957 (its checkpoint)",
            task.accuracy(model, fresh).token,
            0.9957,
        ),
        _at_least("full OV circuit: top logit on the diagonal", "1.00", found.copies, 1.0),
        Finding("token → token: favourite key is the next number", "0.62", f"{found.next_number:.2f}"),
        _at_least(
            "token → token: favourite key is a larger number",
            "“bigger than you, but close”",
            found.larger_number,
            0.9,
        ),
        _at_least("position → token: favoured number rises with the position, ρ",
                  "“smaller numbers earlier”", found.order, 0.9),
        Finding("position → position: rows that put the list before what follows MID",
                "“the list, not the prefix”", f"{found.list_first:.2f}"),
        Finding("token → position: spread within the list, of that over all positions",
                "“uniformly”", f"{found.spread_over_list:.2f}"),
        Finding("four terms against the score, largest difference", "sum of four", f"{found.error:.1e}",
                found.error < 1e-3),
    ]  # fmt: skip


def _sort_figures(task: Task, model: Transformer) -> Mapping[str, go.Figure]:
    terms, tokens, positions = score_terms(model, 0), task.token_names, task.positions
    panels = [
        ("token → token", terms.token_token, tokens, tokens),
        ("token → position", terms.token_position, tokens, positions),
        ("position → token", terms.position_token, positions, tokens),
        ("position → position", terms.position_position, positions, positions),
    ]
    circuit = full_ov_circuit(model, 0, 0)
    axes = ("attended token", "logit")
    return {
        "score_terms": grid(
            [
                Panel(title, cells, rows, columns, limits=signed_limits(cells))
                for title, cells, rows, columns in panels
            ],
            columns=2,
            panel_height=420,
        ),
        "ov_circuit": grid(
            [Panel("full OV circuit", circuit, tokens, names(task.outputs), axes, signed_limits(circuit))],
            columns=1,
            panel_height=480,
        ),
    }


def _held_out(task: Task, model: Transformer) -> StudiedModel:
    return as_studied_model(model, task, task.held_out)


def _compression_findings(
    token: float, both: float, averaged: str
) -> Callable[[Task, Transformer], list[Finding]]:
    """The findings about a compression model, whose published accuracies are given."""

    def findings(task: Task, model: Transformer) -> list[Finding]:
        studied = _held_out(task, model)
        accuracy, average, critical = task.accuracy(model), average_attention(studied), critical_edges(studied)
        leaked = float(attention_leakage(studied, task.visible)["leaked"].max())
        separable = position_separability(studied)["auc"].iloc[-1]
        difference = logit_terms(studied).difference
        n_critical = int(critical.table["critical"].sum())
        return [
            _at_least("token accuracy, held-out pairs", f"{token:g}", accuracy.token, token),
            _at_least("both digits right, held-out pairs", f"{both:g}" if both else "–", accuracy.sequence, both),
            Finding("token accuracy with average attention", averaged, f"{average.averaged:.4f}"),
            Finding("attention leaked to the digits", "none", f"{leaked:g}", leaked == 0),
            Finding("critical edges at 0.01, of those with attention", "–",
                    f"{n_critical} of {len(critical.table)}"),
            Finding("token accuracy on the critical edges alone", "–", f"{critical.without_others:.4f}"),
            Finding("logits rebuilt from their terms, mean L2 difference", "≈ 0", f"{difference:.1e}",
                    difference < 1e-2),
            Finding("area under the ROC curve, o1 against o2, last layer", "–", f"{separable:.3f}"),
        ]  # fmt: skip

    return findings


def _flow(task: Task, model: Transformer) -> Mapping[str, go.Figure]:
    studied = _held_out(task, model)
    effects = critical_edges(studied).table
    return {"flow": flow_figure(studied, 0, effects)}


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
            is_copy = kind == "two blocks"
            rows.append(
                Finding(
                    f"completion of {prompt} ({kind})",
                    completions[prompt],
                    ours,
                    (ours == prompt) == copies if is_copy else None,
                )
            )
        return rows

    return findings


def _completed(task: Task, model: Transformer, copies: bool) -> Finding:
    distinct = task.held_out[[len(set(block)) == 6 for block in task.held_out[:, :6].tolist()]]
    written = complete(model, distinct[:, :12], task.n_ctx)
    share = float((written == distinct).all(axis=1).mean())
    theirs = "both prompts" if copies else "no prompt"
    measure = "12-letter prompts completed, of held-out blocks of different letters"
    return Finding(measure, theirs, f"{share:.4f}", share > 0.99 if copies else share < 0.01)


def completion(task: Task, model: Transformer, prompt: str) -> str:
    """What a copying model writes behind a prompt."""
    ids = np.array([[task.vocab.index(letter) for letter in prompt]])
    written = complete(model, ids, task.n_ctx)[0, len(prompt) :]
    return "".join(str(task.vocab[i]) for i in written)


def _copy_figures(task: Task, model: Transformer) -> Mapping[str, go.Figure]:
    pattern = _held_out(task, model).pattern(0).mean(axis=0)
    panels = [
        Panel(f"head {head}, mean attention", rows, task.positions, task.positions)
        for head, rows in enumerate(pattern)
    ]
    return {"attention": grid(panels, columns=2, panel_height=400)}


KISSANE = "Kissane, “Interpreting a toy model trained to sort lists”"
FARRELL = "Farrell et al. 2025, “Order by Scale”"
CG80499 = "CG80499, “Attempting to reverse engineer one-layer transformers”"

REPRODUCTIONS: Mapping[str, Reproduction] = {
    entry.name: entry
    for entry in (
        Reproduction(
            "sort", KISSANE, "1 layer, 1 head, d=128, no biases, no layer norm; 10 numbers below 50",
            "sort", "fast", 0, _sort_findings, _sort_figures,
        ),
        Reproduction(
            "compression", FARRELL, "2 layers, 1 head, d=64, W_V = W_O = I, frozen", "compression", "fast", 0,
            _compression_findings(0.9145, 0.831, "–"), _flow,
        ),
        Reproduction(
            "compression_three_layers", FARRELL, "3 layers, 1 head, d=64, W_V = W_O = I, frozen", "compression",
            "three_layers", 0, _compression_findings(1.0, 1.0, "–"), _flow,
        ),
        Reproduction(
            "compression_narrow", FARRELL + ", training notebook",
            "3 layers, 1 head, d=8, W_V = W_O = I, frozen; earlier layout", "compression_notebook", "fast", 1,
            _compression_findings(0.99, 0.0, "0.9915"), _flow,
        ),
        Reproduction(
            "copy", CG80499, "1 layer, 4 heads, d=32, sinusoids on queries and keys only, weight decay 1",
            "copy", "published", 0,
            _copy_findings(
                {
                    "ABCDEF": "ECECECECECECECECEC",
                    "ABCDEFABCDEF": "CFCFCFCFCFCF",
                    "XYZRSTXYZRST": "TSTSZSTSTSZST",
                    "ABCDEFXYZRST": "FEFEFEFEFEFE",
                    "QWERTYXYZRST": "YTYTYTYTYTYT",
                },
                "0.69, 0.86, 0.98, 0.58", -0.9996, copies=False,
            ),
            _copy_figures,
        ),
        Reproduction(
            "copy_smeared", CG80499, "the same with smeared keys", "copy", "smeared", 0,
            _copy_findings(
                {
                    "ABCDEF": "EFEFEFEFEFEFEFEFEF",
                    "ABCDEFABCDEF": "ABCDEFABCDEF",
                    "XYZRSTXYZRST": "XYZRSTXYZRST",
                    "ABCDEFXYZRST": "FXYZRSTFXYZR",
                    "QWERTYXYZRST": "YXYXYXYXYXYX",
                },
                "−0.71, 1.00, 1.00, −0.86", -0.9999, copies=True,
            ),
            _copy_figures,
        ),
    )
}  # fmt: skip
"""Every published model, by the name it has on the command line."""
