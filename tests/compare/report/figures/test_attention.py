"""Attention on an input of the reader's own."""

from dataclasses import replace

import numpy as np
import pytest

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.attention.active_heads import active_heads, over_sequence
from rasplens.compare.figures import attention_figure, figures
from rasplens.compare.report.attention_view import best_matches
from rasplens.errors import RaspLensError


def test_both_heads_attend_as_they_do_on_that_input(floor):
    pairing, matches = floor.pairing, best_matches(floor)
    (tokens,) = pairing.task.sequences(pairing.ids[3:4])
    figure = attention_figure(floor, tokens)
    assert len(figure.data) == 2 * len(matches) > 0
    for (compiled, learned), ours, theirs in zip(
        matches.items(), figure.data[::2], figure.data[1::2], strict=True
    ):
        for (layer, head), side, shown in ((compiled, "reference", ours), (learned, "learned", theirs)):
            whole = getattr(pairing, side).pattern(layer)[3, head]
            wanted = over_sequence(whole) if side == "reference" else whole
            np.testing.assert_allclose(shown.z, wanted, atol=1e-4)
    assert {active.head for active in active_heads(pairing)} >= set(matches)


def test_text_is_read_as_tokens(floor):
    task = floor.pairing.task
    (tokens,) = task.sequences(floor.pairing.ids[:1])
    written = attention_figure(floor, " ".join(map(str, tokens)))
    assert written == attention_figure(floor, tokens) == attention_figure(floor, ",".join(map(str, tokens)))
    (other,) = task.sequences(floor.pairing.ids[1:2])
    assert written != attention_figure(floor, other)
    assert str(tokens[1]) in written.layout.xaxis.ticktext[1]


def test_what_cannot_be_shown_says_why(floor, tmp_path):
    with pytest.raises(RaspLensError, match=r"9 tokens.*got 1"):
        attention_figure(floor, "a")
    with pytest.raises(RaspLensError, match="nowhere"):
        attention_figure(floor, ["nowhere"] * floor.pairing.task.n_ctx)
    replace(floor, models=None).save(tmp_path / "c.json")
    with pytest.raises(RaspLensError, match="holds no models"):
        attention_figure(Comparison.load(tmp_path / "c.json"), "a b")


def test_a_loaded_comparison_shows_the_same(floor, tmp_path):
    floor.save(tmp_path / "c.json")
    (tokens,) = floor.pairing.task.sequences(floor.pairing.ids[3:4])
    shown, again = (attention_figure(one, tokens) for one in (floor, Comparison.load(tmp_path / "c.json")))
    assert len(shown.data) == len(again.data) > 0
    for ours, theirs in zip(shown.data, again.data, strict=True):
        np.testing.assert_allclose(ours.z, theirs.z, atol=1e-5)


def test_all_figures_are_in_one_place(floor):
    assert "claims" in figures(floor)
