"""The one-layer model that sorts lists: Kissane, “Interpreting a toy model trained to sort lists”."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from rasplens.compare.analyses import sorting_heuristics
from rasplens.compare.report.figures.panels import Panel, grid, names, signed_limits
from rasplens.model import Transformer
from rasplens.model.weight_circuits import full_ov_circuit, score_terms
from rasplens.reproductions.reproduction import Finding, Reproduction, at_least
from rasplens.tasks import Task

FRESH_LISTS = 20_000
"""Lists on which the sorting model is measured; none of the publication's own choosing."""


def accuracy_on_fresh_lists(task: Task, model: Transformer) -> float:
    """Token accuracy on lists that are drawn anew."""
    return task.accuracy(model, task.draw(np.random.default_rng(1), FRESH_LISTS)).token


def _sort_findings(task: Task, model: Transformer) -> list[Finding]:
    found = sorting_heuristics(model, task)
    return [
        at_least(
            "token accuracy on 20,000 fresh lists",
            "0.9945 (one batch), 0.9957 (its checkpoint)",
            accuracy_on_fresh_lists(task, model),
            0.9957,
        ),
        at_least("full OV circuit: top logit on the diagonal", "1.00", found.copies, 1.0),
        Finding("token → token: favourite key is the next number", "0.62", f"{found.next_number:.2f}"),
        at_least(
            "token → token: favourite key is a larger number",
            "“bigger than you, but close”",
            found.larger_number,
            0.9,
        ),
        at_least("position → token: favoured number rises with the position, ρ",
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


SORT = Reproduction(
    name="sort",
    source="Kissane, “Interpreting a toy model trained to sort lists”",
    model="1 layer, 1 head, d=128, no biases, no layer norm; 10 numbers below 50",
    task="sort",
    recipe="fast",
    seed=0,
    findings=_sort_findings,
    figures=_sort_figures,
)
"""The model of the notebook."""
