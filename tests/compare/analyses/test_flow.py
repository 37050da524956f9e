from dataclasses import replace

import pytest

from rasplens.compare import as_studied_model
from rasplens.compare.analyses import flow_figure
from rasplens.compare.analyses.flow import ARROW, LEAST, STEP


def texts(figure):
    return [text for trace in figure.data for text in trace.text or ()]


def test_every_attention_is_an_arrow_and_what_it_is_worth_stands_there(offset, task):
    ids = task.held_out[:40]
    studied = as_studied_model(offset, task, ids)
    figure = flow_figure(studied)
    drawn = [arrow for arrow in figure.layout.annotations if arrow.arrowcolor != STEP]
    attended = sum(
        int((studied.pattern(layer)[0, studied.heads_of(layer)].max(axis=0, initial=0.0) > LEAST).sum())
        for layer in range(studied.n_layers)
    )
    assert len(drawn) == attended
    strong = {(arrow.ax, arrow.x) for arrow in drawn if arrow.arrowcolor == ARROW}
    assert strong == {(position - 2, position) for position in task.loss_positions}
    assert any(text.startswith("−0.") for text in texts(figure))


def test_the_last_nodes_show_the_answers(offset, task):
    ids = task.held_out[:40]
    figure = flow_figure(as_studied_model(offset, task, ids), example=3)
    (top,) = [trace for trace in figure.data if trace.mode == "markers+text" and len(trace.x) == task.n_ctx][-1:]
    answers = [top.text[position] for position in task.loss_positions]
    assert answers == [task.outputs[code] for code in task.target(ids)[3]]


@pytest.mark.slow
def test_tokens_stay_text(noise, task):
    ids = task.held_out[:40]
    marked = replace(task, vocab=("<b>A</b>", *task.vocab[1:]))
    figure = flow_figure(as_studied_model(noise, marked, ids))
    assert not any("<b>" in text for text in texts(figure))
