"""Heads computable on paper: the levels of keys, and the sharpness that separates them."""

import numpy as np
import pytest
from rasp_examples import BACK, EQUAL

from rasplens.compile.analysis.reachable_values import reachable_values
from rasplens.compile.backend.attention_heads import LEAK, build_heads, sharpness
from rasplens.compile.backend.residual_layout import lay_out
from rasplens.compile.frontend.lowering import build_graph
from rasplens.compile.ir import AttentionNode, IndicesNode
from rasplens.compile.rasp import Aggregate, Comparison, SelectBest, SelectorWidth, indices, tokens
from rasplens.compile.rasp.input_space import input_space


def levels(program, sequence, has_bos=True, scale=1):
    """The score of each key for each query of a sequence, the BOS first; at scale 1 its level."""
    finite = reachable_values(build_graph(program), input_space([0, 1, 2], 3))
    layout = lay_out(finite, has_bos, fold=False)
    nodes = enumerate(finite.nodes)
    variable = next(i for i, node in nodes if isinstance(node, AttentionNode))
    head = build_heads(variable, layout, scale)[0]
    rows = []
    for position, token in enumerate(sequence):
        row = layout.encode(0, token) @ layout.write(0)
        for i, node in enumerate(finite.nodes):
            if isinstance(node, IndicesNode):
                row = row + layout.encode(i, position) @ layout.write(i)
        rows.append(row)
    if has_bos:
        bos = layout.bos_content.copy()
        bos[layout.bos] = 1
        rows.insert(0, bos)
    residual = np.array(rows)
    return residual @ head.W_Q @ head.W_K.T @ residual.T


def test_the_bos_stands_between_selected_and_unselected_keys():
    scores = levels(Aggregate(EQUAL, tokens), [0, 1, 0])
    np.testing.assert_array_equal(scores[1:], [[1, 2, 0, 2], [1, 0, 2, 0], [1, 2, 0, 2]])


def test_to_count_the_bos_is_selected_too():
    scores = levels(SelectorWidth(EQUAL), [0, 1, 0])
    np.testing.assert_array_equal(scores[1:], [[2, 2, 0, 2], [2, 0, 2, 0], [2, 2, 0, 2]])


def test_conjunctions_add_up():
    scores = levels(Aggregate(EQUAL & BACK, tokens), [0, 1, 0])
    np.testing.assert_array_equal(scores[3], [3, 4, 2, 2])
    np.testing.assert_array_equal(scores[1], [3, 2, 0, 2])


def test_without_a_bos_nothing_is_spent_on_it():
    scores = levels(Aggregate(EQUAL, tokens), [0, 1, 0], has_bos=False)
    np.testing.assert_array_equal(scores, [[2, 0, 2], [0, 2, 0], [2, 0, 2]])


def test_the_best_key_stands_highest_and_the_bos_above_all_that_do_not_match():
    latest = SelectBest(tokens, tokens, Comparison.EQ, indices)
    scores = levels(Aggregate(latest, tokens), [0, 1, 0])
    assert scores[3].argmax() == 3  # the last position with token 0
    matching, other, bos = scores[3, [1, 3]], scores[3, 2], scores[3, 0]
    assert matching.min() > bos > other


@pytest.mark.parametrize("n_ctx", [2, 10, 1000])
def test_unselected_keys_keep_less_than_the_stated_share(n_ctx):
    scale = sharpness(n_ctx)
    others = (n_ctx - 1) * np.exp(-scale)
    assert others / (1 + others) <= LEAK
    weaker = (n_ctx - 1) * np.exp(-(scale - 1))
    assert weaker / (1 + weaker) > LEAK / 2  # and it is no sharper than it need be


@pytest.mark.parametrize("n_ctx", [2, 5, 1000])
def test_scores_are_whole_numbers_so_that_float32_keeps_ties(n_ctx):
    """With fractions, two keys on one level differed by the rounding of the sum: 1.49998 for a mean of 1.5."""
    latest = SelectBest(tokens, tokens, Comparison.EQ, indices)
    scores = levels(Aggregate(latest, indices), [0, 1, 1], scale=sharpness(n_ctx))
    np.testing.assert_array_equal(scores.astype(np.float32), scores)
    np.testing.assert_array_equal(scores, np.rint(scores))
