"""The figures of the models themselves: the program, OV and QK circuits, the compiled residual stream."""

from collections.abc import Iterable
from dataclasses import replace

import plotly.graph_objects as go

from rasplens.compare.comparison import Comparison
from rasplens.compare.report.figures.panels import Panel, escape, grid, names, signed_limits
from rasplens.compile.display.drawing import draw_program, draw_residual_stream
from rasplens.model import Transformer
from rasplens.model.hooked import HookedModel
from rasplens.model.weight_circuits import full_ov_circuit, score_terms

MOST_DIRECTIONS = 120
"""Residual streams with more directions are not drawn."""


def ov_figure(comparison: Comparison) -> go.Figure | None:
    """The full OV circuit of every learned head: the logits that attending to a token writes."""
    pairing, model = comparison.pairing, _weights(comparison)
    if pairing is None or model is None or model.config.normalization != "none":
        return None
    task = pairing.task
    panels = []
    for layer, head in pairing.learned.heads:
        circuit = full_ov_circuit(model, layer, head)
        axes = "attended token", "logit"
        panel = Panel(f"L{layer}H{head}", circuit, task.token_names, names(task.outputs), axes)
        panels.append(replace(panel, limits=signed_limits(circuit)))
    return grid(panels, columns=min(2, len(panels)), panel_height=420)


def qk_figure(comparison: Comparison) -> go.Figure | None:
    """The four terms of the attention score of every head that reads the embeddings (layer 0)."""
    pairing, model = comparison.pairing, _weights(comparison)
    if (
        pairing is None
        or model is None
        or not model.config.has_score_terms
        or model.config.normalization != "none"
    ):
        return None
    tokens, positions = pairing.task.token_names, pairing.task.positions
    panels = []
    for head in range(model.config.n_heads):
        terms = score_terms(model, head)
        for title, cells, queries, keys in (
            ("token → token", terms.token_token, tokens, tokens),
            ("token → position", terms.token_position, tokens, positions),
            ("position → token", terms.position_token, positions, tokens),
            ("position → position", terms.position_position, positions, positions),
        ):
            panel = Panel(f"L0H{head}: {title}", cells, queries, keys, limits=signed_limits(cells))
            panels.append(panel)
    return grid(panels, columns=2, panel_height=400)


def _weights(comparison: Comparison) -> Transformer | None:
    """The learned model with its weights; None for one only known by its hooks, or of another vocabulary.

    The task names the tokens and positions of its own vocabulary; a model that was compiled with a BOS has more.
    """
    pairing = comparison.pairing
    if pairing is None or not isinstance(pairing.learned.model, HookedModel):
        return None
    model, task = pairing.learned.model.to_transformer(), pairing.task
    ours = len(task.token_names), len(task.outputs), task.n_ctx
    theirs = model.config.d_vocab, model.config.d_vocab_out, model.config.n_ctx
    return model if theirs == ours else None


def program_figure(comparison: Comparison) -> go.Figure | None:
    """The expressions of the reference program."""
    if comparison.pairing is None:
        return None
    figure = draw_program(comparison.pairing.compiled.program).update_layout(height=400)
    return figure.for_each_trace(lambda trace: trace.update(text=_escaped(trace.text)))


def residual_stream_figure(comparison: Comparison) -> go.Figure | None:
    """Draw the residual stream of the compiled model on one input; None if it has too many directions to read."""
    pairing = comparison.pairing
    if pairing is None or pairing.compiled.transformer.config.d_model > MOST_DIRECTIONS:
        return None
    figure = draw_residual_stream(pairing.compiled, pairing.task.sequences(pairing.ids[:1])[0])
    return figure.for_each_trace(lambda trace: trace.update(x=_escaped(trace.x), y=_escaped(trace.y)))


def _escaped(labels: Iterable[object]) -> list[str]:
    return [escape(label) for label in labels]
