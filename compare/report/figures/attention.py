"""Attention on an input of the reader's own: each compiled head beside the learned one it is matched with."""

from collections.abc import Sequence

import plotly.graph_objects as go

from rasplens.compare.comparison import Comparison
from rasplens.compare.report.attention_view import best_matches, head_name
from rasplens.compare.report.figures.panels import Panel, grid
from rasplens.compile.rasp import Value
from rasplens.errors import RaspLensError
from rasplens.tasks import Task

HEIGHT = 330
"""Of a panel, in pixels."""


def attention_figure(comparison: Comparison, tokens: str | Sequence[Value]) -> go.Figure:
    """Each compiled head and the learned head matched with it, on one input: what each query attends to.

    Args:
        comparison: One made in this session: its file holds no model.
        tokens: An input of the task, at all of its positions; as text, with spaces between tokens.

    Raises:
        RaspLensError: If the comparison was loaded, or has no heads to show; or the task has no such input.
    """
    pairing = comparison.pairing
    if pairing is None:
        raise RaspLensError("This comparison was loaded from a file, which holds no models. Compare again.")
    matches = best_matches(comparison)
    if not matches:
        raise RaspLensError("No compiled head of this comparison attends to anything that could be shown.")
    task = pairing.task
    own = pairing.on(task.ids([_tokens(task, tokens)]))
    named = zip(task.positions, (task.token_names[i] for i in own.ids[0].tolist()), strict=True)
    labels = [name if name == token else f"{name}: {token}" for name, token in named]
    panels = []
    for compiled, learned in matches.items():
        sides = (("compiled", compiled, own.reference), ("learned", learned, own.learned))
        for side, (layer, index), model in sides:
            title = f"{side} {head_name((layer, index))}"
            title += f", {pairing.compiled.heads[compiled]}" if side == "compiled" else ""
            panels.append(Panel(title, model.pattern(layer)[0, index], labels, labels))
    return grid(panels, 2, HEIGHT)


def _tokens(task: Task, tokens: str | Sequence[Value]) -> list[Value]:
    """The tokens of an input; of text, those of the task that are written so."""
    if not isinstance(tokens, str):
        return list(tokens)
    written = {str(token): token for token in task.vocab}
    return [written.get(word, word) for word in tokens.split()]
