"""The attention viewer's data: the patterns themselves, of the heads that are matched."""

from dataclasses import replace

import numpy as np
import pandas as pd

from rasplens.compare.comparison import Comparison
from rasplens.compare.evidence.attention.active_heads import active_heads
from rasplens.compare.report.attention_view import FULL, N_INPUTS, attention_view, best_matches, head_name


def test_each_compiled_head_stands_beside_its_match_on_a_few_inputs(floor):
    view, pairing = attention_view(floor), floor.pairing
    assert len(view.inputs) == N_INPUTS
    assert view.positions == list(pairing.task.positions)
    assert view.inputs[2] == [pairing.task.token_names[i] for i in pairing.ids[2]]
    heads = [one for one in active_heads(pairing) if one.head in best_matches(floor)]
    assert len(view.pairs) == len(heads) >= 1
    for pair, active in zip(view.to_dict()["pairs"], heads, strict=True):
        layer, index = learned = best_matches(floor)[active.head]
        assert pair["title"] == f"{head_name(active.head)}, {active.variable} · L{layer}H{index}"
        for side, head, pattern in (
            ("compiled", active.head, active.pattern),
            ("learned", learned, pairing.learned.pattern(layer)[:, index]),
        ):
            shown = np.array(pair[side]["patterns"]) / FULL
            np.testing.assert_allclose(shown, pattern[:N_INPUTS], atol=0.5 / FULL + 1e-6)
            assert pair[side]["head"] == head


def test_the_match_is_the_assigned_head_else_the_most_similar(floor):
    table = pd.DataFrame(
        [(0, 0, 0, 0, 0.9, False), (0, 0, 0, 1, 0.5, True), (1, 0, 0, 0, 0.2, False), (1, 0, 0, 1, 0.3, False)],
        columns=["compiled_layer", "compiled_head", "layer", "head", "similarity", "matched"],
    )
    found = best_matches(replace(floor, tables={"attention": table}))
    assert found == {(0, 0): (0, 1), (1, 0): (0, 1)}


def test_without_models_or_heads_there_is_nothing_to_view(floor, tmp_path):
    floor.save(tmp_path / "c.json")
    assert attention_view(Comparison.load(tmp_path / "c.json")) is None
    assert attention_view(replace(floor, tables={})) is None
